# tests/runtime/cluster.sh - the machines of the plans that these scripts run.
# shellcheck shell=sh

# cluster RANKS: prints it as a scenario has it.
cluster() {
    cat <<END
{"gpu": "h100-sxm-80g", "num_gpus": $1, "gpus_per_node": 8,
  "scale_up": {"link": "nvlink4", "domain_gpus": 8},
  "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 50e9, "topology": "fat-tree",
   "oversubscription": 1.0}}
END
}
