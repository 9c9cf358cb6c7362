"""The whole test set of the digits example on the RTL of a board's target: every output word is equal."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rtl_harness import BOARD_TARGET

import rasna


@pytest.mark.long
def test_the_digits_give_the_bits_of_pytorch(rtl_path, capsys):
    import digits

    torch.manual_seed(0)
    x_train, y_train, x_test, y_test = digits.load_data()
    model = digits.DigitsNet()
    rasna.tune(model, sp=0.8)
    digits.train(model, x_train, y_train, epochs=3, rate=4e-3, title="digits")
    program = rasna.compile(model, x_train[:256], channel_last=False, target=BOARD_TARGET)
    tuned = digits.predict(model, x_test)
    with program.to_runtime(rtl_path(BOARD_TARGET)) as runtime:
        outputs = runtime(x_test.numpy(), channel_last=False)
        cycles = sum(runtime.counters)
    equal = int(np.all(outputs == tuned, axis=1).sum())
    estimate = sum(layer["cycles"] for layer in program.layers)
    accuracy = digits.accuracy(outputs, y_test)
    with capsys.disabled():
        print(f"\n{equal} of {len(x_test)} equal, accuracy {accuracy:.1f} %, "
              f"{cycles} cycles per image, estimate {estimate}")
    assert equal == len(outputs) == 597
    assert accuracy > 50  # chance is 10 %: it is the trained network that ran
    assert abs(cycles - estimate) <= 0.05 * cycles
