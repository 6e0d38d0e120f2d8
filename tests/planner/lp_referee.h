// tests/planner/lp_referee.h - GLPK as the referee of what we write as integer programs.
#pragma once

// The optimum of the program in a file of CPLEX LP format, solved in a child process.
//   returns  INFINITY where it has no solution; below 0 where the referee gave no answer in time
double lp_referee(const char *path);
