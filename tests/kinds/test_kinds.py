"""Kinds of report that users of comparable tools filed, and the tests that hold each of them.

KINDS maps a kind to what it is and to where it is held: tests by file and function, and rows of
docs/support.md by the start of their names. Every entry must exist.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cases import CASES

TESTS = Path(__file__).resolve().parents[1]

KINDS: dict[int, tuple[str, list[str]]] = {
    1: ("padding same, valid, of one side", [
        "row conv2d_padding", "compile/test_convolution.py",
        "kinds/test_neighbours.py::test_convolutions_through_the_whole_chain"]),
    2: ("dilation", ["row conv2d_dilation", "row conv2d_padding_same_dilated",
                     "compile/test_convolution.py"]),
    3: ("groups, depthwise, depth multiplier", [
        "row conv2d_groups", "row conv2d_depth", "compile/test_convolution.py"]),
    4: ("non-square, kernels 1 to 11, stride beyond the kernel", [
        "row conv2d_stride", "row conv2d_kernel",
        "kinds/test_neighbours.py::test_convolutions_through_the_whole_chain"]),
    5: ("odd channel counts, one pixel, maps smaller than the padding", [
        "row conv2d_one_pixel", "row conv2d_padding_larger_than_the_map",
        "kinds/test_neighbours.py::test_convolutions_through_the_whole_chain"]),
    6: ("max pooling with every attribute", [
        "row maxpool2d", "compile/test_pooling.py::test_max_pooling_is_exact_and_keeps_the_type"]),
    7: ("adaptive average pooling to any size", [
        "row adaptiveavgpool2d", "compile/test_pooling.py::test_averages"]),
    8: ("functional forms, keywords only", [
        "row relu", "row conv2d_keywords_only", "row linear_f_linear", "row mean", "row flatten",
        "row squeeze", "spelled/test_first_half.py::test_equal_to_eager_or_refused_by_name"]),
    9: ("Sequential, ModuleList, shared and unused modules", [
        "compile/test_capture.py::test_module_lists_shared_layers_and_unused_ones",
        "kinds/test_neighbours.py::test_ways_to_hold_modules_and_tensors",
        "spelled/test_second_half.py::test_equal_to_eager_or_refused_by_name"]),
    10: ("Identity, Dropout, ReLU6, Hardtanh, clamp", [
        "row identity", "row dropout", "row relu6", "row hardtanh", "row clamp"]),
    11: ("BatchNorm anywhere", [
        "row batchnorm2d", "row batchnorm1d", "compile/test_convolution.py",
        "kinds/test_neighbours.py::test_batch_norm_of_all_kinds"]),
    12: ("residual sums", [
        "row add", "row sub", "compile/test_arithmetic.py::test_sums_of_tensors",
        "compile/test_arithmetic.py::test_sum_of_two_inputs_with_a_broadcast",
        "compile/test_weights.py::test_fraction_bits_that_differ_by_up_to_20"]),
    13: ("scalar and per-channel affines", [
        "row scalar_arithmetic", "row mul_a_parameter_per_channel", "row div",
        "compile/test_arithmetic.py::test_scalar_and_per_channel_arithmetic",
        "compile/test_compile.py::test_photographs_of_usual_sizes_are_normalised_by_the_program"]),
    14: ("fan-out, intermediates and inputs as outputs, tuple, list, dict", [
        "row outputs", "compile/test_capture.py::test_structure_of_the_outputs",
        "compile/test_capture.py::test_one_tensor_read_by_two_differently_padded_convolutions",
        "compile/test_capture.py::test_an_intermediate_result_that_is_an_output_too"]),
    15: ("control flow, iteration, len, print, sizes: with the line", [
        "row control_flow", "compile/test_trace.py::test_untraceable_python_says_where",
        "compile/test_trace.py::test_conditions_on_sizes_are_decided_by_the_samples"]),
    16: ("what is not supported, all at once", [
        "compile/test_capture.py::test_all_problems_are_reported_at_once",
        "compile/test_check.py::test_the_whole_report",
        "compile/test_check.py::test_compile_raises_the_same_report"]),
    17: ("training mode, device, half, double, hooks, wrappers", [
        "compile/test_samples.py::test_training_mode_is_refused",
        "compile/test_samples.py::test_other_dtypes_are_copied_to_float32",
        "compile/test_samples.py::test_wrappers_are_taken_off",
        "compile/test_pipeline.py::test_hooks_that_change_nothing_are_fine_and_others_are_refused",
        "compile/test_compile.py::test_wrappers_and_double_models_compile",
        "kinds/test_neighbours.py::test_weights_that_cannot_be_read_are_named"]),
    18: ("odd weights", [
        "compile/test_pipeline.py::test_weights_of_all_kinds",
        "compile/test_weights.py::test_a_row_of_zeros_keeps_an_exact_bias"]),
    19: ("odd samples", [
        "compile/test_pipeline.py::test_samples_of_all_kinds",
        "compile/test_samples.py::test_wrong_samples",
        "compile/test_samples.py::test_samples_become_float32_in_nchw_order"]),
    20: ("a branch that samples never exercise", [
        "compile/test_pipeline.py::test_weights_of_all_kinds",
        "kinds/test_neighbours.py::test_a_branch_that_the_samples_leave_dead_wakes_up"]),
    21: ("copies, checkpoints, half, autocast, optimisers, DDP, torch.compile", [
        "tune/test_state.py::test_a_copy_computes_the_same_and_lives_by_itself",
        "tune/test_state.py::test_a_checkpoint_goes_into_a_freshly_tuned_model",
        "tune/test_state.py::test_a_checkpoint_goes_into_a_plain_model",
        "tune/test_state.py::test_averaged_model", "tune/test_state.py::test_torch_compile",
        "tune/test_state.py::test_distributed_data_parallel_with_one_process",
        "tune/test_state.py::test_autocast_trains_and_does_not_change_eval",
        "tune/test_state.py::test_other_float_types",
        "tune/test_tune.py::test_pruned_weights_stay_zero_in_parameters_and_state_dict",
        "tune/test_tune.py::test_tuning_twice_replaces_the_first_settings",
        "tune/test_prune.py::test_momentum_from_before_the_pruning_moves_nothing",
        "kinds/test_neighbours.py::test_tuning_in_the_middle_of_training"]),
    22: ("arguments of tune", [
        "tune/test_settings.py::test_the_ends_of_every_range_are_accepted",
        "tune/test_settings.py::test_other_values_are_refused_with_what_is_allowed"]),
    23: ("no layer, shared weights, frozen parameters", [
        "tune/test_tune.py::test_a_model_without_a_layer_is_refused",
        "tune/test_tune.py::"
        "test_a_weight_that_a_dense_layer_shares_stays_dense_and_others_share_their_mask",
        "tune/test_tune.py::test_frozen_parameters_stay_frozen_and_are_pruned"]),
    24: ("damaged, foreign and hostile files, paths", [
        "program/test_container.py::test_a_flip_of_any_byte_is_noticed",
        "program/test_container.py::test_truncation_is_noticed_at_every_length",
        "program/test_container.py::test_swapped_parts_are_noticed",
        "program/test_container.py::test_foreign_files_are_not_rasna_files",
        "program/test_container.py::test_another_format_version_is_named",
        "program/test_container.py::test_a_part_that_claims_a_terabyte_is_refused",
        "program/test_container.py::test_any_file_name_works",
        "program/test_container.py::test_paths_that_cannot_be_read_say_why",
        "program/test_container.py::test_no_permission_is_an_error",
        "program/test_container.py::test_saving_over_the_loaded_file_works"]),
    25: ("runtime objects that do not fit, many of them, threads, forks", [
        "runtime/test_csim.py::test_another_target_is_refused_with_both_named",
        "runtime/test_csim.py::test_another_isa_version_is_refused",
        "runtime/test_csim.py::test_a_foreign_library_is_refused",
        "runtime/test_csim.py::test_files_that_are_no_objects_say_why",
        "runtime/test_csim.py::test_an_object_rebuilt_at_the_same_path_is_a_new_one",
        "runtime/test_csim.py::test_eight_threads_share_a_runtime",
        "runtime/test_csim.py::test_forked_processes_use_the_runtime"]),
    26: ("inputs of every kind", [
        "runtime/test_base.py::test_strides_and_read_only_arrays",
        "runtime/test_base.py::test_any_real_dtype", "runtime/test_base.py::test_lists_are_arrays",
        "runtime/test_base.py::test_torch_tensors_without_importing_torch",
        "runtime/test_base.py::test_batches_have_any_length",
        "runtime/test_base.py::test_wrong_shapes_say_what_is_needed",
        "runtime/test_base.py::test_nan_and_infinity_are_refused",
        "runtime/test_base.py::test_results_never_change_later"]),
    27: ("packed integers", [
        "runtime/test_base.py::test_packed_integers_in_and_out",
        "runtime/test_base.py::test_packed_integers_must_have_the_very_dtype"]),
    28: ("A, B, A; interrupts", [
        "runtime/test_csim.py::test_a_then_b_then_a_again",
        "runtime/test_csim.py::test_an_interrupt_leaves_the_runtime_usable"]),
    30: ("missing and old tools", [
        "overlay/test_preflight.py::test_everything_that_is_missing_is_listed_at_once",
        "overlay/test_preflight.py::test_targets_that_compile_rtl_ask_for_llvm_before_they_start",
        "overlay/test_bitstream.py::test_releases_with_the_date_overflow_are_named",
        "overlay/test_bitstream.py::test_without_tools_it_ends_quickly_and_lists_all_that_is_missing",
        "sim/test_build.py::test_old_compilers_are_named"]),
    31: ("benches that pass for nothing", [
        "rtl/test_faults.py::test_one_flipped_bit_of_a_weight_is_noticed",
        "rtl/test_faults.py::test_one_wrong_bit_in_the_rtl_is_noticed",
        "networks/test_networks.py::test_a_flipped_weight_is_noticed",
        "hlsc/test_mutation.py::test_compiler_fault_is_noticed",
        "spelled/test_first_half.py::test_damage_is_noticed"]),
    32: ("right in C, wrong in RTL", [
        "hlsc/test_reject.py::test_refused_with_this_message",
        "hlsc/test_checks.py::test_a_deadlock_names_process_and_stream",
        "hlsc/test_golden.py::test_rtl_equals_software_with_and_without_stalls",
        "rtl/test_programs.py::test_a_program_leaves_nothing_behind_for_the_next"]),
}  # fmt: skip


def missing(entry: str) -> bool:
    """Whether a row, a file or a test does not exist."""
    if entry.startswith("row "):
        return not any(case.name.startswith(entry[4:]) for case in CASES)
    file, _, test = entry.partition("::")
    path = TESTS / file
    if not path.exists():
        return True
    return bool(test) and not re.search(rf"^def {test}\(", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_held_by_tests_that_exist(kind):
    name, entries = KINDS[kind]
    assert entries and not [entry for entry in entries if missing(entry)], name


def test_a_missing_test_is_noticed():
    assert missing("compile/test_trace.py::test_nothing") and missing("row no_such")
    assert missing("compile/test_nothing.py")
    assert set(KINDS) == set(range(1, 33)) - {29}  # boards have their own
