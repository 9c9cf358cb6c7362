"""ResNet-50 in full size: what the runtime gives is what the tuned model gives in eval."""

import warnings

import numpy as np
import pytest
import torch

import rasna
from tests.models.zoo import build, sample
from tests.networks.check import objects


@pytest.mark.skipif(not objects("pynq-z2"), reason="no simulator object; make sim-so builds it")
def test_resnet50_at_224_equals_its_tuned_model_bit_for_bit():
    model, (x,) = build("resnet50_224"), sample("resnet50_224", batch=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rasna.tune(model, sp=0.8, chpad=False, strategy="all")
    program = rasna.compile(model.eval(), x, channel_last=False)
    with torch.no_grad():
        want = model(x).numpy()
    with program.to_runtime(objects("pynq-z2")[0]) as runtime:
        got = runtime(x.numpy(), channel_last=False)
    assert want.shape == (1, 1000) and np.array_equal(got, want)
    assert len(np.unique(want)) > 50
    assert program.words.nbytes < 12_000_000 and program.scratch_words * 8 < 3_600_000
