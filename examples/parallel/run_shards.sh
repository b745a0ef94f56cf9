#!/bin/bash
# Translate or score a text in shards with GNU parallel, and merge the outputs.
#
#     run_shards.sh OUTPUT SHARDS JOBS translate MODEL --text FILE [OPTIONS]
#     run_shards.sh OUTPUT SHARDS JOBS score MODEL --text FILE [OPTIONS]
#
# JOBS processes run at a time, with one thread each. The outputs of the shards are in OUTPUT.parts. If a process is killed,
# run the same command again: finished shards are skipped. For several machines with a common file system, add
# --sshloginfile NODES --workdir . to the options of parallel.
set -euo pipefail

output=$1 shards=$2 jobs=$3
shift 3

# With env, the number of threads also reaches other machines. The number of a shard takes the place of ,SHARD, so that {}
# in an option stays as it is.
seq "$shards" | parallel --quote -I ,SHARD, --jobs "$jobs" --line-buffer \
    env OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" dragoman "$@" --shards "$shards" --shard ,SHARD, -o "$output.parts"
dragoman merge "$output.parts" -o "$output"
