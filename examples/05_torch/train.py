# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What the communication of a training step costs on four of the GPUs of a DGX H100.

Run it as: torchrun --nproc-per-node 4 examples/05_torch/train.py
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import towpath.torch

STEPS = 3
FORWARD_S = 50e-6  # of computation, on the GPU that you have in mind
BACKWARD_S = 100e-6


def main() -> None:
    simulation = towpath.torch.simulate("dgx-h100", ranks_per_host=4)
    dist.init_process_group("towpath-sim")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(1024, 1024))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    simulation.clear()  # not what the start costs
    for _ in range(STEPS):
        simulation.compute(FORWARD_S)
        loss = model(torch.randn(8, 1024)).square().mean()
        with simulation.computing(BACKWARD_S):
            loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
