// whatif/checkpoint.h - how often to write a checkpoint, and what remains of the time: formulas.
//
// Model:  failures come at random, independently, with mean time between failures M (mtbf_s). A run
//         computes for an interval tau, then stands still while it writes a checkpoint for delta
//         (write_s). A failure loses what was computed since the last complete checkpoint and costs
//         R (restart_s) before computing goes on; failures may come in all three.
// Source: Young, "A first order approximation to the optimum checkpoint interval", Comm. ACM 17(9),
//         1974: tau = sqrt(2 delta M).
//         Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
//         Future Generation Computer Systems 22(3), 2006: eq. 37 (interval), eq. 20 (run time)
//           T = M e^(R / M) (e^((tau + delta) / M) - 1) T_s / tau
// Limits: a constant failure rate; the interval may be any time, not only whole steps
//         (whatif/failures.h plays those).
#pragma once

// Seconds of computing between checkpoints; all > 0.
double young_interval_s(double write_s, double mtbf_s);
double daly_interval_s(double write_s, double mtbf_s);

// Share of the time that is progress: T_s / T. mtbf_s INFINITY: no failures.
double daly_goodput_frac(double interval_s, double write_s, double restart_s, double mtbf_s);

// The goodput beside what takes the rest of the time: all shares add up to 1.
typedef struct {
    double goodput_frac;
    double write_frac;   // of checkpoints that count
    double restart_frac; // 1 - e^(-R / M): a failure came less than R ago
    double lost_frac;    // what was computed or written in vain
} GoodputShares;

GoodputShares daly_shares(double interval_s, double write_s, double restart_s, double mtbf_s);

// Spare nodes.
//
// Model:  a node that fails is replaced at once where a spare is left and comes back as a spare
//         after its repair. Where none is left the job waits for the first that comes back, and
//         nothing fails meanwhile. Nodes under repair are the customers of a loss system with
//         num_spares + 1 servers: the job waits while all are busy. Its share of the time depends
//         on the mean time of a repair alone, not on how these vary.
// Source: Erlang, "Solution of some problems in the theory of probabilities of significance in
//         automatic telephone exchanges", 1917 (loss formula); Sevast'yanov, Theory Probab. Appl.
//         2(1), 1957 (any distribution of service times).
//
//   load     failures that need a repair, times the mean repair: nodes under repair if nothing
//            ever waited
//   returns  the share of the time that the job does not wait
double spares_available_frac(int num_spares, double load);

// The number of spares with the most progress for a paid node: available / (nodes + spares).
int spares_best(int num_nodes, double load);
