#!/bin/sh
# Draws the curves of docs/results.md from the runs in results/.
set -e
draw() {  # the picture's name, the report's figures, the runs
    name=$1 figures=$2
    shift 2
    "${PUSHCEN:-.venv/bin/pushcen}" report "$@" --out "runs/report-$name" --formats svg
    for figure in $figures; do cp "runs/report-$name/$figure.svg" "docs/pictures/${name}_$figure.svg"; done
}

paper=results/cifar10-paper small=results/cifar10-small
draw cifar10 "accuracy delayed mass bytes_per_push" $paper/*-seed?
draw cifar10 accuracy_bytes $paper/*-seed? $paper/nine-receivers/*-seed?
draw cifar10_narrow accuracy results/cifar10-medium/narrow/*
draw cifar10_pushcen delayed $paper/pushcen-alpha0.4-seed0
draw cifar10_small accuracy_bytes $small/pushcen-alpha*-seed? $small/pushcen-lean-alpha*-seed? $small/async-dfedavg-alpha*-seed? $small/divshare-alpha*-seed? \
    $small/swift-alpha*-seed? $small/independent-alpha*-seed? --columns data.alpha --target 45
draw digits accuracy_bytes results/digits/*-seed? --target 85
for alpha in 0.1 0.4 1; do
    draw cifar10_small_alpha$alpha accuracy $small/pushcen-alpha$alpha-seed? $small/pushcen-paper-alpha$alpha-seed? \
        $small/async-dfedavg-alpha$alpha-seed? $small/swift-alpha$alpha-seed? $small/divshare-alpha$alpha-seed? \
        $small/independent-alpha$alpha-seed?
done
"${PYTHON:-.venv/bin/python}" scripts/draw_field.py
