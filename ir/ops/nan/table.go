package nan

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

var none = math.NaN()

// rules lists the ops of each rule.
var rules = map[Rule]string{
	NoFloats: `
		alibi and axis_index bincount check_index dequantize dim_size iota mel_filterbank not one_hot or qconv2d qmatmul
		random_bits random_exponential random_gumbel random_normal random_permutation random_truncated_normal
		random_uniform shift_left shift_right window window_mask xor`,
	Moved: `
		all_gather all_to_all broadcast_in_dim collective_broadcast collective_permute complex concatenate conj
		diag diagonal dynamic_slice dynamic_update_slice embedding fftshift flatten gather imag meshgrid moe_dispatch
		pad pad_mode pixel_shuffle pixel_unshuffle real rematerialize repeat reshape reverse roll scatter select slice
		split stack stop_gradient swap_axes tile transpose tril triu unstack windows`,
	Shows: `
		abs acos acosh ada_norm adaptive_avg_pool adaptive_max_pool add all_reduce asin asinh associative_scan atan
		atan2 atanh attention attention_backward attention_forward avg_pool axial_rope batch_norm_inference
		batch_norm_training bce bce_with_logits cached_attention cbrt ceil celu checkpoint clamp cond conv2d conv_general conv_transpose
		copysign cos cosh cosine_similarity cross_entropy cross_entropy_loss ctc_loss cumlogsumexp cummax cummin
		cumprod cumsum custom_jvp custom_vjp degrees dequantize_linear dft digamma div dot_general dropout einsum elu
		erf erfc erfinv exp exp2 expm1 fake_quant fake_quant_lsq fft floor floor_divide fma focal gated_delta geglu
		gelu gelu_tanh glu group_norm grouped_matmul gru hard_shrink hard_sigmoid hard_swish hard_tanh hinge huber
		hypot i0e i1e instance_norm irfft istft kl_div kron layer_norm leaky_relu lgamma linear linear_call
		linear_recurrence log log10 log1p log2 log_mel log_sigmoid log_softmax logaddexp logit logsumexp lora_matmul
		lstm mae max max_pool mean min mish mod moe_combine mse mul mul_zero neg nextafter nll norm outer overlap_add
		polygamma pow prelu quantile quantized_grouped_matmul quantized_matmul quick_gelu radians random_beta random_gamma reciprocal
		reduce_max reduce_min reduce_prod reduce_scatter reduce_sum relu relu6 rem resize rfft rms_norm rnn rope
		rope_table round round_ste rsqrt scan scatter_add scatter_max scatter_min scatter_mul segment_reduce
		selective_scan selu sigmoid sign silu sin sinc sinh sink_attention smooth_l1 soft_shrink softmax softmin
		softplus softsign sqrt square squareplus ssd standardize std stft sub sum_all swiglu tan tanh tanh_shrink tensordot
		thresholded_relu trace trunc var vdot weight_norm welch while_loop xlog1py xlogy`,
	Spoils: `
		cholesky cofactor cond_number det eigh expm householder inv jacobi lstsq lu lyapunov matrix_norm matrix_power
		pinv qr slogdet solve spd_logm spd_sqrtm svd triangular_solve`,
	Answered: `
		all any argmax argmin argsort bitcast convert count_nonzero eq ge gt histogram is_finite is_inf is_nan le lt
		matrix_rank moe_route nan_to_num ne quantize_linear random_bernoulli random_categorical random_poisson
		sample_token searchsorted sort top_k unique`,
}

const (
	nonzero = "NaN is not 0, so it counts as true"
	largest = "NaN is larger than all numbers, several are equal"
)

// byDevice lists ops whose kernels combine NaN with other elements than the reference
// does.
var byDevice = []ir.Op{"conv2d", "conv_general", "conv_transpose", "dft"}

const padded = "beside padding a weight of NaN times 0 is NaN or left out, by device"

// notes state exceptions from the rule of an op.
var notes = map[ir.Op]string{
	"all": nonzero, "any": nonzero, "count_nonzero": nonzero,
	"argsort": largest, "sort": largest, "top_k": largest,
	"argmax": "the first NaN is the greatest", "argmin": "the first NaN is the least",
	"bitcast":    "its bits, of which devices may change those that are no digits of a number",
	"convert":    "an integer of it is 0, as in JAX (PyTorch leaves it open), a bool true, a float NaN",
	"eq":         "false",
	"ge":         "false",
	"gt":         "false",
	"le":         "false",
	"lt":         "false",
	"ne":         "true",
	"is_nan":     "true",
	"is_inf":     "false",
	"is_finite":  "false",
	"nan_to_num": "the number given for it, 0 by default",
	"conv2d":     padded, "conv_general": padded, "conv_transpose": padded,
	"dft":                "in the real or the imaginary parts, or in both, by device",
	"copysign":           "of y the sign is read, which devices may change of a NaN",
	"clamp":              "in any operand",
	"dropout":            "of an element that is dropped it is 0, as in JAX, since a mask selects (NaN in PyTorch, which multiplies)",
	"sign":               "NaN, as in JAX (0 in PyTorch), so that it shows",
	"pow":                "x to the power 0 and 1 to the power y are 1 for all x and y, as in IEEE 754",
	"hypot":              "infinite beside an infinity, as in IEEE 754, JAX and PyTorch",
	"mul_zero":           "0 times NaN is 0: that is what the op is for",
	"norm":               "of order 0 it is one that is not 0",
	"xlogy":              "in either operand, also where the other is 0",
	"xlog1py":            "in either operand, also where the other is 0",
	"histogram":          "in no bin",
	"searchsorted":       "after all numbers and equal to NaN, as in JAX (after all elements in PyTorch)",
	"unique":             "all are one, after all numbers, as in JAX (PyTorch keeps each)",
	"matrix_rank":        "0: no singular value is larger than NaN",
	"moe_route":          "experts of NaN are chosen first, with a weight of NaN",
	"quantize_linear":    "0, as in convert",
	"random_bernoulli":   "false, as in JAX (PyTorch has an error, which kernels have not)",
	"random_categorical": "its place, as of the greatest, as in JAX (PyTorch has an error, which kernels have not)",
	"sample_token":       "its place, as in random_categorical, whatever top_k and top_p are",
	"random_poisson":     "-1, as in JAX: an integer has no NaN",
	"attention":          "scores that a mask hides do not count, their values may",
	"quantile":           "the median too, as in JAX and PyTorch",
}

func floats(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }

func about(attrs ir.Attrs, in ...*ir.Array) ir.Sample {
	return ir.Sample{Name: "case", Attrs: attrs, In: in, NoGrad: "NaN"}
}

// compared are cases of NaN compared with numbers on either side.
func compared(want ...float64) []Case {
	return []Case{{about(nil, floats(none, 1, none, 1), floats(1, none, none, 1)), [][]float64{want}}}
}

// predicateCases are cases of a function of NaN, an infinity and a number.
func predicateCases(attrs ir.Attrs, want ...float64) []Case {
	return []Case{{about(attrs, floats(none, math.Inf(-1), 2)), [][]float64{want}}}
}

var key = ir.Ints(ir.U32, []int64{7, 5})

// cases are examples of the notes. Values are those of JAX 0.10.2 and PyTorch 2.11 where
// they have the op, except as noted.
var cases = map[ir.Op][]Case{
	"eq": compared(0, 0, 0, 1), "ne": compared(1, 1, 1, 0), "lt": compared(0, 0, 0, 0),
	"le": compared(0, 0, 0, 1), "gt": compared(0, 0, 0, 0), "ge": compared(0, 0, 0, 1),
	"is_nan": predicateCases(nil, 1, 0, 0), "is_inf": predicateCases(nil, 0, 1, 0), "is_finite": predicateCases(nil, 0, 0, 1),
	"nan_to_num":    predicateCases(&ops.NanToNumAttrs{NaN: 5, NegInf: -7}, 5, -7, 2),
	"sign":          predicateCases(nil, none, -1, 1),
	"all":           predicateCases(&ops.AxesAttrs{Axes: []int{0}}, 1),
	"any":           {{about(&ops.AxesAttrs{Axes: []int{0}}, floats(0, none)), [][]float64{{1}}}},
	"count_nonzero": {{about(&ops.AxesAttrs{Axes: []int{0}}, floats(0, none, 2)), [][]float64{{2}}}},
	"argmax":        {{about(&ops.ArgAttrs{DType: ir.I32}, floats(3, none, 9, none)), [][]float64{{1}}}},
	"argmin":        {{about(&ops.ArgAttrs{DType: ir.I32}, floats(3, none, 1, none)), [][]float64{{1}}}},
	"argsort": {
		{about(&ops.SortAttrs{}, floats(3, none, 1, math.Inf(1), none)), [][]float64{{2, 0, 3, 1, 4}}},
		{about(&ops.SortAttrs{Descending: true}, floats(3, none, 1, math.Inf(1), none)), [][]float64{{1, 4, 3, 0, 2}}},
	},
	"sort": {
		{about(&ops.SortAttrs{}, floats(3, none, 1)), [][]float64{{1, 3, none}}},
		{about(&ops.SortAttrs{Descending: true}, floats(3, none, 1)), [][]float64{{none, 3, 1}}},
	},
	"top_k": {
		{about(&ops.TopKAttrs{K: 2}, floats(3, none, 1)), [][]float64{{none, 3}, {1, 0}}},
		{about(&ops.TopKAttrs{K: 2, Smallest: true}, floats(3, none, 1)), [][]float64{{1, 3}, {2, 0}}},
	},
	"convert": {
		{about(&ops.DTypeAttrs{DType: ir.I32}, floats(none, 2)), [][]float64{{0, 2}}},
		{about(&ops.DTypeAttrs{DType: ir.U8}, floats(none, 2)), [][]float64{{0, 2}}},
		{about(&ops.DTypeAttrs{DType: ir.Bool}, floats(none, 0)), [][]float64{{1, 0}}},
		{about(&ops.DTypeAttrs{DType: ir.F16}, floats(none, 2)), [][]float64{{none, 2}}},
	},
	"pow":       {{about(nil, floats(none, 1, none, 2), floats(0, none, 1, none)), [][]float64{{1, 1, none, none}}}},
	"hypot":     {{about(nil, floats(none, 1, math.Inf(-1), none), floats(1, none, none, math.Inf(1))), [][]float64{{none, none, math.Inf(1), math.Inf(1)}}}},
	"mul_zero":  {{about(nil, floats(0, none, none), floats(none, 0, 1)), [][]float64{{0, 0, none}}}},
	"clamp":     {{about(nil, floats(none, 1, 1), floats(0, none, 0), floats(2, 2, none)), [][]float64{{none, none, none}}}},
	"max":       {{about(nil, floats(none, 1), floats(1, none)), [][]float64{{none, none}}}},
	"min":       {{about(nil, floats(none, 1), floats(1, none)), [][]float64{{none, none}}}},
	"xlogy":     {{about(nil, floats(0, none, math.Inf(1)), floats(none, 1, 1)), [][]float64{{none, none, none}}}},
	"xlog1py":   {{about(nil, floats(0, none, math.Inf(1)), floats(none, 1, 0)), [][]float64{{none, none, none}}}},
	"relu":      predicateCases(nil, none, 0, 2),
	"histogram": {{about(&ops.HistogramAttrs{BinsAttrs: ops.BinsAttrs{Bins: 2}, Low: 0, High: 1}, floats(.1, none, .6)), [][]float64{{1, 1}}}},
	"searchsorted": {
		{about(&ops.SearchAttrs{}, floats(1, 2, none), floats(none, 5)), [][]float64{{2, 2}}},
		{about(&ops.SearchAttrs{Right: true}, floats(1, 2, none), floats(none, 5)), [][]float64{{3, 2}}},
	},
	"unique":             {{about(&ops.SizeAttrs{Size: ir.N(3)}, floats(none, 2, none, 1)), [][]float64{{1, 2, none}, {2, 1, 2, 0}, {1, 1, 2}}}},
	"cummax":             {{about(&ops.CumSumAttrs{}, floats(3, none, 9)), [][]float64{{3, none, none}}}},
	"quantile":           {{about(&ops.QuantileAttrs{Q: 0}, floats(1, none, 2)), [][]float64{{none}}}},
	"softmax":            {{about(&ops.AxisAttrs{}, floats(1, none, 2)), [][]float64{{none, none, none}}}},
	"random_poisson":     {{about(nil, floats(none), key), [][]float64{{-1}}}},
	"random_categorical": {{about(&ops.AxisAttrs{}, floats(9, none, 2), key), [][]float64{{1}}}},
	"sample_token": {
		{about(&ops.SampleAttrs{Temperature: 1, TopK: 2, TopP: 1}, floats(9, 8, none, 2), key), [][]float64{{2}}},
		{about(&ops.SampleAttrs{Temperature: 1, TopP: .5}, floats(9, 8, none, 2), key), [][]float64{{2}}},
	},
}
