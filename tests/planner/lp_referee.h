// tests/planner/lp_referee.h - GLPK as the referee of what we write as integer programs.
#pragma once

// The optimum of the program in a file of CPLEX LP format, solved in a child process.
//   returns  INFINITY where it has no solution; below 0 where the referee gave no answer in time
double lp_referee(const char *path);

enum { LP_REFEREE_NAMES_SIZE = 4096 };

// lp_referee, which also gives the names of the variables that are 1 in the solution found, a space
// behind each.
//   names  [LP_REFEREE_NAMES_SIZE]; cut behind the last that has room
double lp_referee_ones(const char *path, char *names);
