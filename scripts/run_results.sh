#!/bin/sh
# Carries out every run that docs/results.md shows. Stop it when you like: the same command goes on where it was.
# Estimates by the cost of a step: small scale 75 s of one core a run (CIFAR-10; 104 s measured once, under load) and 8
# minutes (CIFAR-100); the paper's scale 25 minutes a run.
set -e
reproduce() { "${PUSHCEN:-.venv/bin/pushcen}" reproduce "$@" --collect results; }

reproduce table1 --dataset cifar10 --scale small
central="table1 --dataset cifar10 --scale paper --alpha 0.4 --set evaluation.every=5"
reproduce $central --rows pushcen,pushcen-paper,async-dfedavg,divshare,independent
reproduce $central --rows pushcen,async-dfedavg,divshare,independent --seeds 2
reproduce $central --rows pushcen --set method.full_after=0
reproduce $central --rows pushcen --set method.full_after=0 --set method.strength=0.1
reproduce bytes --dataset cifar10 --scale paper --alpha 0.4 --set evaluation.every=5 --seeds 2 --rows pushcen-lean
reproduce bytes --dataset cifar10 --scale paper --alpha 0.4 --set evaluation.every=5 --seeds 2 --rows pushcen-lean --set method.spread=0 --set method.bits=0.95
reproduce bytes --dataset cifar10 --scale paper --alpha 0.4 --set evaluation.every=5 --seeds 2 --rows pushcen-lean --set method.feedback=false --set method.spread=0 --set method.bits=0.9
reproduce bytes --dataset cifar10 --scale paper --alpha 0.4 --set evaluation.every=5 --seeds 2 --rows pushcen-lean --set method.receivers=9
reproduce lean --dataset cifar10 --scale medium --seeds 3
reproduce time --dataset cifar10 --scale medium --seeds 2
reproduce changes --dataset cifar10 --scale small --seeds 3
reproduce table4 --dataset cifar10 --scale small --seeds 3
reproduce table6 --dataset cifar10 --scale small --seeds 3
reproduce table7 --dataset cifar10 --scale small --seeds 3
reproduce table1 --dataset cifar10 --scale small --seeds 3
reproduce table1 --dataset cifar10 --scale small --seeds 3 --rows pushcen --set method.full_after=0
reproduce table1 --dataset cifar100 --scale small --alpha 0.4 --rows pushcen,async-dfedavg,divshare
reproduce bytes --dataset cifar10 --scale small --seeds 3 --rows pushcen-lean
reproduce bytes --dataset cifar100 --scale small --alpha 0.4 --rows pushcen-lean
# Tiny-ImageNet's 40 classes lie in the folder tiny-imagenet-mini.
reproduce table1 --dataset tiny-imagenet --scale small --alpha 0.4 --rows pushcen,async-dfedavg,divshare --set data.source=tiny-imagenet-mini --set data.share=1.0 --set data.size=32
# All methods: first what their options are chosen by, then the tables. 20 to 110 s of one core a run, digits 5 to 15 s.
reproduce tuning
reproduce field --dataset digits --alpha 0.4 --seeds 5
reproduce field --alpha 0.4 --seeds 3
reproduce field --seeds 3 --rows pushcen,pushcen-lean,swift,epidemic
digits=pushcen,pushcen-lean,async-dfedavg,swift,divshare,independent
"${PUSHCEN:-.venv/bin/pushcen}" compare digits --methods $digits --seeds 5 --base async-dfedavg --target 85 --name digits
for run in runs/digits/*-seed-*; do
    to=results/digits/$(basename "$run" | sed s/-seed-/-seed/)
    mkdir -p "$to" && cp "$run/config.toml" "$run/metrics.jsonl" "$run/summary.json" "$to"
done
"${PUSHCEN:-.venv/bin/pushcen}" compare stragglers --methods divshare,pushcen,pushcen-lean,async-dfedavg,swift --target 40 --name stragglers
"${PUSHCEN:-.venv/bin/pushcen}" compare stragglers --methods ad-psgd --set network.backlog=true --target 40 --name stragglers-queued
for run in runs/stragglers/*/ runs/stragglers-queued/*/; do
    to=results/stragglers/$(basename "$run")
    mkdir -p "$to" && cp "$run/config.toml" "$run/metrics.jsonl" "$run/summary.json" "$to"
done
