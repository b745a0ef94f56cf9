#!/usr/bin/env bash
# Start or stop a standalone Spark cluster on this machine: one master, and workers with one core each.
#
#   examples/spark/cluster.sh start [WORKERS]     prints the URL for --master; 2 workers by default
#   examples/spark/cluster.sh stop
#
# PYTHON: the Python that has dragoman[spark] (default: python3). PORT: of the master (default: 7077).
# CLUSTER_DIR: for logs and process numbers (default: ./spark-cluster). WORKER_MEMORY: of each worker (default: 2g).
set -euo pipefail

python=${PYTHON:-python3}
port=${PORT:-7077}
directory=${CLUSTER_DIR:-spark-cluster}
memory=${WORKER_MEMORY:-2g}
host=127.0.0.1

wait_for() { # FILE PATTERN: wait until a line of a log matches
  for _ in $(seq 1500); do
    if grep -q "$2" "$1" 2>/dev/null; then return; fi
    sleep 0.2
  done
  echo "$1: no line with '$2' after five minutes" >&2
  exit 1
}

launch() { # NAME ARGUMENTS...: start a process of Spark in the background and note its number
  local name=$1
  shift
  SPARK_NO_DAEMONIZE=1 nohup "$spark_home/bin/spark-class" "$@" >"$directory/$name.log" 2>&1 </dev/null &
  echo "$!" >>"$directory/processes"
}

start() {
  if [ -e "$directory/processes" ]; then
    echo "$directory/processes: a cluster is running; stop it first" >&2
    exit 1
  fi
  spark_home=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
  PYSPARK_PYTHON=$("$python" -c 'import sys; print(sys.executable)')
  export PYSPARK_PYTHON
  mkdir -p "$directory"
  directory=$(cd "$directory" && pwd)
  launch master org.apache.spark.deploy.master.Master --host "$host" --port "$port" --webui-port 0
  wait_for "$directory/master.log" "Starting Spark master at"
  # If the port is taken, by a cluster of another user for example, Spark starts the master at the next one.
  if ! grep -q "Starting Spark master at spark://$host:$port\$" "$directory/master.log"; then
    echo "port $port is taken; choose another with PORT" >&2
    stop
    exit 1
  fi
  for number in $(seq "${1:-2}"); do
    launch "worker-$number" org.apache.spark.deploy.worker.Worker --host "$host" --webui-port 0 \
      --cores 1 --memory "$memory" --work-dir "$directory/work" "spark://$host:$port"
  done
  for number in $(seq "${1:-2}"); do
    wait_for "$directory/worker-$number.log" "Successfully registered with master"
  done
  echo "spark://$host:$port"
}

stop() {
  if [ ! -e "$directory/processes" ]; then
    echo "$directory: no cluster is running" >&2
    exit 1
  fi
  while read -r process; do
    kill "$process" 2>/dev/null || true
  done <"$directory/processes"
  rm "$directory/processes"
}

case "${1:-}" in
  start) start "${2:-2}" ;;
  stop) stop ;;
  *)
    echo "usage: cluster.sh start [WORKERS] | stop" >&2
    exit 2
    ;;
esac
