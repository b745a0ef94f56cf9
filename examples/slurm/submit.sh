#!/bin/bash
# Translate or score a text in shards with Slurm, and merge the outputs when all tasks have succeeded.
#
#     submit.sh OUTPUT SHARDS TASKS translate MODEL --text FILE [OPTIONS]
#     submit.sh OUTPUT SHARDS TASKS score MODEL --text FILE [OPTIONS]
#
# At most TASKS tasks run at a time. All nodes must see the model, the text and the outputs under the same names. If tasks
# have failed, the job that merges is cancelled. Submit again: finished shards are skipped.
set -euo pipefail

output=$1 shards=$2 tasks=$3
shift 3
directory=$(dirname "$(realpath "$0")")

job=$(sbatch --parsable --array="1-$shards%$tasks" "$directory/shard.sbatch" "$output.parts" "$shards" "$@")
sbatch --dependency="afterok:$job" --kill-on-invalid-dep=yes "$directory/merge.sbatch" "$output.parts" "$output"
