#!/bin/sh
# Flows in the simulator itself, on networks made by hand (sim/hand_made.h).
set -eu
[ -x "$MESHWRIGHT_SIM" ] || exit 77

# Plays the network $2; its activities must end at $3. $1 says what is claimed.
claim() {
    ends=$(printf '%s' "$2" | "$MESHWRIGHT_SIM" --hand-made |
        sed -n 's/.*"end_s":[[:space:]]*\[\(.*\)\].*/\1/p')
    awk -v a="$ends" -v b="$3" 'BEGIN {
        n = split(a, x, ", "); if (n != split(b, y, ", ")) exit 1
        for (i = 1; i <= n; i++) if ((x[i] - y[i]) ^ 2 > (1e-6 * y[i]) ^ 2) exit 1
    }' || {
        echo "$1: activities end at $ends, not $3"
        exit 1
    }
}

claim "a flow alone has the slowest link of its route" \
    '{"link_bytes_per_s": [4e9, 1e9, 2e9],
      "activities": [{"bytes": 2e9, "links": [0, 1, 2]}]}' "2"

claim "a delay comes before the flow" \
    '{"link_bytes_per_s": [1e9],
      "activities": [{"delay_s": 0.5, "bytes": 1e9, "links": [0]}]}' "1.5"

claim "an activity waits for all it names" \
    '{"link_bytes_per_s": [1e9],
      "activities": [{"delay_s": 1}, {"delay_s": 2}, {"after": [0, 1]},
                     {"bytes": 1e9, "links": [0], "after": [2]}]}' "1, 2, 2, 3"

# Each has half of the link, and the longer one all of it when the other has ended:
# 1 s x 2 for the first; of the second 1 GB is left then.
claim "two flows share a link" \
    '{"link_bytes_per_s": [1e9],
      "activities": [{"bytes": 1e9, "links": [0]}, {"bytes": 2e9, "links": [0]}]}' "2, 3"

# The third is held to 1 GB/s by link 1 for 1 s; the other two have 4.5 of the 10 each, then 5 for
# what is left, 4.5 GB.
claim "what one flow cannot use, the others get" \
    '{"link_bytes_per_s": [10e9, 1e9],
      "activities": [{"bytes": 9e9, "links": [0]}, {"bytes": 9e9, "links": [0]},
                     {"bytes": 1e9, "links": [0, 1]}]}' "1.9, 1.9, 1"

# Shares do not depend on the number of links that a flow crosses.
claim "long routes are no disadvantage" \
    '{"link_bytes_per_s": [50e9, 50e9, 1600e9, 1600e9, 50e9],
      "activities": [{"bytes": 50e9, "links": [0, 1]},
                     {"bytes": 50e9, "links": [0, 2, 3, 4]}]}' "2, 2"

# Ring all-reduce of 12 GB over 4: each passes on 2 x 3/4 x 12 GB through its port out and its
# neighbour's port in, 18 s at 1 GB/s, though all four flow at once.
claim "a ring uses every port once" \
    '{"link_bytes_per_s": [1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9],
      "activities": [{"bytes": 18e9, "links": [0, 5]}, {"bytes": 18e9, "links": [1, 6]},
                     {"bytes": 18e9, "links": [2, 7]}, {"bytes": 18e9, "links": [3, 4]}]}' \
    "18, 18, 18, 18"

# Up from 0 to 1.5, 2 to 3.5, 4 to 5.5: 2 GB at 1 GB/s take 0.5 s more, 4 GB 1 s more.
claim "a flow stalls while its link is down" \
    '{"link_bytes_per_s": [1e9, 1e9],
      "activities": [{"bytes": 2e9, "links": [0]}, {"bytes": 4e9, "links": [0, 1], "after": [0]}],
      "flaps": [{"link": 0, "period_s": 2, "down_s": 0.5, "first_down_s": 1.5}]}' "2.5, 7.5"

# Down up to 0.25; what the stalled flow leaves of link 1 the other has: until then 1 GB/s, 0.5 then.
# 0.75 GB of it remain and take 1.5 s; the first has moved as much then and the last 0.25 GB alone.
claim "a link may be down at the start, and others use what is free" \
    '{"link_bytes_per_s": [1e9, 1e9],
      "activities": [{"bytes": 1e9, "links": [0, 1]}, {"bytes": 1e9, "links": [1]}],
      "flaps": [{"link": 0, "period_s": 9, "down_s": 0.5, "first_down_s": -0.25}]}' "2, 1.75"

# Two reasons for link 0 to be down, from 1 to 2 and from 1.5 to 3.
claim "a link is up again when nothing holds it down" \
    '{"link_bytes_per_s": [1e9], "activities": [{"bytes": 2e9, "links": [0]}],
      "flaps": [{"link": 0, "period_s": 9, "down_s": 1, "first_down_s": 1},
                {"link": 0, "period_s": 9, "down_s": 1.5, "first_down_s": 1.5}]}' "4"

claim "a flap of a link that nothing crosses does nothing" \
    '{"link_bytes_per_s": [1e9, 1e9], "activities": [{"bytes": 2e9, "links": [0]}],
      "flaps": [{"link": 1, "period_s": 0.5, "down_s": 0.25, "first_down_s": 0.1}]}' "2"

# An activity that waits for itself never begins, however long links come and go.
for flaps in '' '{"link": 0, "period_s": 1, "down_s": 0.5, "first_down_s": 0.5}'; do
    message=$(echo '{"link_bytes_per_s": [1e9], "activities": [{"delay_s": 1, "after": [0]}],
        "flaps": ['"$flaps"']}' | timeout 20 "$MESHWRIGHT_SIM" --hand-made 2>&1) && exit 1
    [ "$message" = "meshwright-sim: 1 of 1 activities never began: they wait in a circle" ] || {
        echo "$message"
        exit 1
    }
done
