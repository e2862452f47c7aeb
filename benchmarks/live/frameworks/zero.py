# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's ZeRO on CPUs: a rank that trains a small model, its parameters sharded (stage 3).

compare.py starts it. Rank 0 prints a line of JSON: a digest of the trained parameters, and the
seconds of each step.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed  # noqa: E402: asks for the accelerator when it is imported
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

import towpath.torch  # noqa: E402, F401: registers the backend

STEPS = 12  # of which the first two are not timed
BATCH = 4
CONFIG = {
    "train_micro_batch_size_per_gpu": BATCH,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": 3},
    "communication_data_type": "fp32",
}


def main() -> None:
    torch.set_num_threads(1)
    deepspeed.init_distributed(dist_backend=sys.argv[1])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
    parameters = list(model.parameters())
    engine, *_ = deepspeed.initialize(model=model, model_parameters=parameters, config=CONFIG)
    torch.manual_seed(1 + dist.get_rank())
    seconds = []
    for _ in range(STEPS):
        values = torch.randn(BATCH, 512)
        began = time.perf_counter()
        engine.backward((engine(values) - values).square().mean())
        engine.step()
        seconds.append(time.perf_counter() - began)
    with deepspeed.zero.GatheredParameters(parameters):
        whole = b"".join(each.detach().numpy().tobytes() for each in parameters)
    if dist.get_rank() == 0:
        digest = hashlib.sha256(whole).hexdigest()[:16]
        print(json.dumps({"digest": digest, "seconds": seconds[2:]}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
