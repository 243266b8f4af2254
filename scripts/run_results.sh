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
reproduce changes --dataset cifar10 --scale small
reproduce table4 --dataset cifar10 --scale small --seeds 3
reproduce table6 --dataset cifar10 --scale small
reproduce table7 --dataset cifar10 --scale small
reproduce table1 --dataset cifar10 --scale small --seeds 3
reproduce table1 --dataset cifar10 --scale small --seeds 3 --rows pushcen --set method.full_after=0
reproduce table1 --dataset cifar100 --scale small --alpha 0.4 --rows pushcen,async-dfedavg,divshare
reproduce bytes --dataset cifar10 --scale small --seeds 3 --rows pushcen-lean
reproduce bytes --dataset cifar100 --scale small --alpha 0.4 --rows pushcen-lean
