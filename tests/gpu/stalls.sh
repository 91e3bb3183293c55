#!/usr/bin/env bash
# stalls.sh - Nsight Compute's reasons for stalls, hit rates of caches and instructions of the runs
# that the simulator is compared with: what COUNTERS.md and the words of /v1/explain are to be held
# against beside requests, sectors and wavefronts. It takes a minute and a half on an H200.
#
#   tests/gpu/stalls.sh FOLDER OUT      where tests/gpu/standalone.sh built profile_gpu; for results
#
# OUT/stalls.csv: a line for each kernel, in the order of OUT/names.txt, which has the runs.
set -euo pipefail

bin=${1:?the folder that standalone.sh built in} out=${2:?a folder for the results}
stall=smsp__average_warps_issue_stalled
metrics=gpu__time_duration.sum,launch__registers_per_thread,sm__warps_active.avg.pct_of_peak_sustained_active
metrics+=,smsp__inst_executed.sum,sm__inst_issued.avg.pct_of_peak_sustained_active
metrics+=,l1tex__data_pipe_lsu_wavefronts.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum
metrics+=,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_read_lookup_hit.sum
metrics+=,dram__bytes_read.sum,dram__bytes_write.sum
for reason in long_scoreboard short_scoreboard mio_throttle lg_throttle barrier wait math_pipe_throttle not_selected; do
    metrics+=,${stall}_${reason}_per_issue_active.ratio
done

mkdir -p "$out"
timeout 100 ncu --csv --page raw --clock-control none --log-file "$out/stalls.csv" --metrics "$metrics" \
    "$bin/profile_gpu" >"$out/names.txt"
echo "$(wc -l <"$out/names.txt") runs in $out/stalls.csv"
