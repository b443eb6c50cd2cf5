"""How large each experiment is: the paper's sizes, and small ones for `--quick`."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.datacell.throughput import Work


@dataclass(frozen=True)
class Sizes:
    """One set of sizes; steps and panes give the windows."""

    panes: int
    step: int
    slides: int  # of ours: at least three windows
    peer_slides: int
    slow_slides: int  # of our own slow modes
    flat_panes: tuple[int, ...]
    flat_slides: int
    percents: tuple[int, ...]
    join_keys: tuple[int, ...]
    join_step: int
    window_steps: tuple[int, ...]
    step_panes: tuple[int, ...]
    sweep_slides: int
    early_step: int
    early_inserts: int
    early_slides: int
    csv_steps: tuple[int, ...]
    throughput: Work
    join_steps: tuple[int, ...]
    landmark_step: int
    landmark_windows: int
    landmark_repetitions: int
    queries: int


QUICK = Sizes(
    panes=64,
    step=16_000,
    slides=192,
    peer_slides=64,
    slow_slides=3,
    flat_panes=(64, 640),
    flat_slides=64,
    percents=(10, 90),
    join_keys=(1_000, 100_000),
    join_step=160,
    window_steps=(2_000, 16_000),
    step_panes=(4, 64),
    sweep_slides=20,
    early_step=100_000,
    early_inserts=64,
    early_slides=40,
    csv_steps=(16, 160),
    throughput=Work(64, 20_000, 2_000_000, 400_000, 2_000_000, 1_000_000, 20_000, 5),
    join_steps=(16, 160),
    landmark_step=100_000,
    landmark_windows=10,
    landmark_repetitions=3,
    queries=40,
)

FULL = Sizes(
    panes=512,
    step=20_000,
    slides=3 * 512,
    peer_slides=512,
    slow_slides=5,
    flat_panes=(51, 512, 5120),
    flat_slides=512,
    percents=(10, 30, 50, 70, 90),
    join_keys=(10_000, 100_000, 1_000_000, 10_000_000),
    join_step=1_600,
    window_steps=(2_000, 20_000, 50_000),
    step_panes=(2, 8, 64, 512, 2048),
    sweep_slides=50,
    early_step=640_000,
    early_inserts=512,
    early_slides=100,
    csv_steps=(16, 160, 1_600),
    throughput=Work(512, 20_000, 12_000_000, 4_000_000, 12_000_000, 2_000_000, 100_000, 5),
    join_steps=(16, 160, 1_600),
    landmark_step=2_500_000,
    landmark_windows=40,
    landmark_repetitions=3,
    queries=200,
)
