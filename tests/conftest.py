"""Tests run side by side in processes, so that each computes on one thread."""

import torch

torch.set_num_threads(1)
