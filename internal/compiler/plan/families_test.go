package plan_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sim/tally"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/cuda"
)

// family is a loss of a model.
type family struct {
	name string
	loss func() (*ir.Graph, error)
}

// gpuTimes is by how much the batches of [families.All], which are those of a CPU, are multiplied.
const gpuTimes = 8

// allFamilies are the models whose training steps are compared with the minimum memory traffic.
func allFamilies() []family {
	list := slices.Concat(largeFamilies, moreFamilies, otherFamilies, furtherFamilies)
	for _, f := range families.All {
		list = append(list, family{f.Name, lossOfFamily(f)})
	}
	for _, f := range families.Further {
		list = append(list, family{"further " + f.Name, lossOfFamily(f)})
	}
	for _, f := range families.Unusual {
		list = append(list, family{"unusual " + f.Name, lossOfFamily(f)})
	}
	return list
}

// lossOfFamily is the loss of one of [families.All] with the batch of a GPU.
func lossOfFamily(f families.Family) func() (*ir.Graph, error) {
	return func() (*ir.Graph, error) {
		g, _, err := f.Loss(gpuTimes)
		return g, err
	}
}

// largeFamilies are losses of models at realistic training sizes.
var largeFamilies = []family{
	{"resnet18", irtest.ResNet18.Loss},
	{"resnet50", irtest.ResNet50.Loss},
	{"batch norm, channels last", lossOf(func(b *ir.Builder) ir.Value { return normalised(b, ir.Dims(32, 112, 112, 64), 0, 1, 2) })},
	{"batch norm, channels first", lossOf(func(b *ir.Builder) ir.Value { return normalised(b, ir.Dims(32, 64, 112, 112), 0, 2, 3) })},
	{"group norm of a u-net", lossOf(func(b *ir.Builder) ir.Value {
		x, scale, bias := b.Param("x", ir.F32, ir.Dims(8, 64, 64, 320)...), b.Param("scale", ir.F32, ir.N(320)), b.Param("bias", ir.F32, ir.N(320))
		return ops.Silu(b, ops.GroupNorm(b, x, scale, bias, 32, 1e-5))
	})},
	{"layer norm of odd rows", lossOf(func(b *ir.Builder) ir.Value {
		x, scale, bias := b.Param("x", ir.F32, ir.Dims(8191, 1001)...), b.Param("scale", ir.F32, ir.N(1001)), b.Param("bias", ir.F32, ir.N(1001))
		return ops.LayerNorm(b, x, scale, bias, 1e-5)
	})},
	{"layer norm of few long rows", lossOf(func(b *ir.Builder) ir.Value {
		x, scale, bias := b.Param("x", ir.F32, ir.Dims(7, 1000003)...), b.Param("scale", ir.F32, ir.N(1000003)), b.Param("bias", ir.F32, ir.N(1000003))
		return ops.LayerNorm(b, x, scale, bias, 1e-5)
	})},
	{"lstm of width 650", lossOf(func(b *ir.Builder) ir.Value {
		const steps, batch, width = 35, 20, 650
		x := b.Input("x", ir.F32, ir.Dims(steps, batch, width)...)
		h, c := b.Input("h", ir.F32, ir.Dims(1, batch, width)...), b.Input("c", ir.F32, ir.Dims(1, batch, width)...)
		weights := []ir.Value{b.Param("w", ir.F32, ir.Dims(width, 4*width)...), b.Param("u", ir.F32, ir.Dims(width, 4*width)...), b.Param("bias0", ir.F32, ir.N(4*width)), b.Param("bias1", ir.F32, ir.N(4*width))}
		y, _, _ := ops.LSTM(b, x, h, c, weights, ops.RecurrentAttrs{})
		return y
	})},
	{"group norm of ten channels each", lossOf(func(b *ir.Builder) ir.Value {
		x, w := b.Param("x", ir.F32, ir.Dims(4, 64, 64, 640)...), b.Param("w", ir.F32, ir.Dims(3, 3, 640, 320)...)
		scale, bias := b.Param("scale", ir.F32, ir.N(320)), b.Param("bias", ir.F32, ir.N(320))
		y := ops.Conv2D(b, ops.Silu(b, x), w, bias, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		return ops.GroupNorm(b, y, scale, bias, 32, 1e-5)
	})},
	{"attention in windows", lossOf(func(b *ir.Builder) ir.Value {
		q, k, v := b.Param("q", ir.F32, ir.Dims(4096, 3, 49, 32)...), b.Param("k", ir.F32, ir.Dims(4096, 3, 49, 32)...), b.Param("v", ir.F32, ir.Dims(4096, 3, 49, 32)...)
		return ops.Attention(b, q, k, v, b.Param("bias", ir.F32, ir.Dims(1, 3, 49, 49)...), ops.AttentionAttrs{})
	})},
	{"embedding", lossOf(func(b *ir.Builder) ir.Value {
		table, at := b.Param("table", ir.F32, ir.Dims(50257, 768)...), b.Input("at", ir.I32, ir.Dims(16384)...)
		return ops.Embedding(b, table, at)
	})},
}

// lossOf is the sum of sines of a model's results.
func lossOf(model func(b *ir.Builder) ir.Value) func() (*ir.Graph, error) {
	return func() (*ir.Graph, error) {
		return ir.Build("loss", func(b *ir.Builder) { b.Output("loss", ops.ReduceSum(b, ops.Sin(b, model(b)))) })
	}
}

// normalised is a parameter less its mean and divided by its deviation over axes.
func normalised(b *ir.Builder, dims []ir.Dim, axes ...int) ir.Value {
	x := b.Param("x", ir.F32, dims...)
	centred := ops.Sub(b, x, ops.KeepDims(b, ops.Mean, x, axes...))
	variance := ops.KeepDims(b, ops.Mean, ops.Square(b, centred), axes...)
	return ops.Mul(b, centred, ops.Rsqrt(b, ops.Add(b, variance, ops.ConstLike(b, variance, 1e-5))))
}

// familyTarget is a target of plans, and the type of products, if not f32.
type familyTarget struct {
	name    string
	half    ir.DType
	target  func() plan.Target
	printer plan.Printer
	counted bool // what its kernels do is counted
}

// familyTargets are the targets of the plans.
var familyTargets = []familyTarget{
	{"H200, bf16", ir.BF16, hopper, cudacpp.Printer{}, true},
	{"WebGPU", 0, roomy, wgsl.Printer{}, true},
}

// hopper is an H200 with its multiply-adds and its library.
func hopper() plan.Target {
	t := cuda.Target()
	t.Device = hardware.H200()
	t.Mma, t.TensorMaps, t.MmaBytes, t.Multiprocessors = true, true, 227<<10, 132
	t.Products, t.ProductBytes = loop.FasterProducts, 32<<20
	return t
}

// roomy is WebGPU on a device that holds the tensors of the largest family.
func roomy() plan.Target {
	t := plan.WebGPU()
	t.Limits.BindingBytes, t.Limits.BufferBytes = 1<<31-1<<8, 1<<31-1<<8
	return t
}

// Bounds on the time of a kernel, as a multiple of its minimum, and of the whole step.
const (
	maxOfFloor = 3.0
	maxOfStep  = 0.05
)

// maxOfLive and overLive bound the memory of intermediate values in one arena: as a multiple of the bytes that
// are live at a time, and the bytes more that small values take where launches run concurrently.
const (
	maxOfLive = 1.1
	overLive  = 4 << 20
)

// concurrent names the families over these bounds on memory: launches that may run beside each other share none.
var concurrent = map[string]bool{"unusual hash grid": true, "gated delta": true}

// slow names the kernels over these bounds, by family, target and name, with the reason.
var slow = map[string]string{
	"gru in both directions, H200, bf16, contract_dot_general_add_parts": fewWorkgroups,
	"gru in both directions, WebGPU, contract_dot_general_parts":         fewWorkgroups,
	"lstm of width 650, H200, bf16, map_sigmoid_mul_convert_reshape":     ofStep,
	"lstm of width 650, H200, bf16, map_add_mul_zero":                    ofStep,
	"lstm of width 650, H200, bf16, reduce_convert_reduce_sum":           fewWorkgroups,
	"lstm of width 650, WebGPU, map_add_tanh_mul_reshape":                ofStep,
	"lstm of width 650, WebGPU, map_sigmoid_mul":                         ofStep,
	"lstm of width 650, WebGPU, map_mul_zero":                            ofStep,
	"lstm, H200, bf16, map_sigmoid_mul_convert_reshape":                  ofStep,
	"gru, H200, bf16, map_sigmoid_mul_convert_reshape":                   ofStep,

	"gru in both directions, H200, bf16, map_sigmoid_mul_convert_reshape": ofStep,
	"gru in both directions, H200, bf16, map_add_mul_zero":                ofStep,
	"gru in both directions, H200, bf16, map_add":                         ofStep,
	"gru in both directions, WebGPU, map_pad_add":                         ofStep,
	"gru in both directions, WebGPU, map_pad":                             ofStep,
	"gru in both directions, WebGPU, map_mul":                             ofStep,
	"gru in both directions, WebGPU, map_sigmoid_mul":                     ofStep,
	"gru in both directions, WebGPU, map_slice_sigmoid_mul_tanh":          ofStep,
	"vocabulary of 250,000, H200, bf16, scatter_embedding_rows":           ofTable,
	"vocabulary of 250,000, H200, bf16, scatter_embedding_join":           ofTable,
	"vocabulary of 250,000, WebGPU, scatter_embedding_rows":               ofTable,
	"vocabulary of 250,000, WebGPU, scatter_embedding_join":               ofTable,

	"deep hedging, H200, bf16, reduce_dot_general_add":   ofStep,
	"deep hedging, H200, bf16, reduce_dot_general_parts": ofStep,
	"deep hedging, WebGPU, reduce_dot_general_add":       ofStep,
	"deep hedging, WebGPU, reduce_dot_general_parts":     ofStep,

	"fourier operator, H200, bf16, map_convert":        ofFrequencies,
	"transducer, H200, bf16, map_sub":                  ofStep,
	"transducer, H200, bf16, map_add":                  ofStep,
	"transducer, H200, bf16, map_select":               ofStep,
	"transducer, H200, bf16, map_mul_zero_sub_reshape": ofStep,
	"transducer, H200, bf16, prefix_cumsum":            ofStep,
	"transducer, H200, bf16, prefix_linear_recurrence": ofStep,
	"transducer, WebGPU, map_add":                      ofStep,
	"transducer, WebGPU, map_mul_zero_sub_reshape":     ofStep,
	"transducer, WebGPU, prefix_cumsum":                ofStep,
	"transducer, WebGPU, prefix_linear_recurrence":     ofStep,

	"ctc, H200, bf16, reduce_reduce_max_reduce_sum_add_exp":   ofStep,
	"ctc, H200, bf16, map_broadcast_in_dim_select":            ofStep,
	"further crf, H200, bf16, loop_reduce_reduce_sum":         inOneWorkgroup,
	"further ode, H200, bf16, loop_contract_dot_general_tanh": inOneWorkgroup,
	"further crf, WebGPU, loop_reduce_reduce_sum":             inOneWorkgroup,
	"ctc, H200, bf16, loop_map_select":                        inOneWorkgroup,
	"ctc, WebGPU, reduce_reduce_max_reduce_sum_add_exp":       ofStep,
	"ctc, WebGPU, map_broadcast_in_dim_select":                ofStep,
	"ctc, WebGPU, loop_map_select":                            inOneWorkgroup,

	"recommender, H200, bf16, scatter_scatter_add_rows": ofTable,
	"recommender, WebGPU, scatter_scatter_add_rows":     ofTable,

	"gp, H200, bf16, reduce_reduce_min_slice_reduce_sum": ofMatrix,
	"gp, WebGPU, reduce_dot_general_sub":                 ofMatrix,
	"gp, WebGPU, reduce_reduce_sum_add":                  ofMatrix,
	"gp, WebGPU, reduce_reduce_min":                      ofMatrix,

	"perceiver, H200, bf16, reduce_transformer_block_norm_parts": fewWorkgroups,
	"coupling flow, WebGPU, reduce_tanh_exp_add_reduce_sum":      fewWorkgroups,
	"gan, WebGPU, reduce_dot_general_neg":                        fewWorkgroups,
	"gan, WebGPU, reduce_dot_general_logp_neg_mul":               fewWorkgroups,
	"gan, WebGPU, reduce_dot_general":                            fewWorkgroups,

	"unusual lru, WebGPU, reduce_sigmoid_reduce_sum":       fewWorkgroups,
	"unusual t5, H200, bf16, reduce_reduce_sum_parts":      fewWorkgroups,
	"unusual t5, WebGPU, reduce_reduce_sum_parts":          fewWorkgroups,
	"unusual kalman, H200, bf16, reduce_dot_general_parts": ofStep,

	"unet, T4, reduce_reshape_reduce_sum":                              fewWorkgroups,
	"residual, H200, bf16, reduce_reduce_sum_mul_reduce_sum_mul_parts": fewWorkgroups,
	"q learning, T4, reduce_reduce_sum_mul":                            fewWorkgroups,
	"sort, T4, reduce_reduce_sum_add_parts":                            fewWorkgroups,
	"q learning, WebGPU, reduce_reduce_sum_mul":                        fewWorkgroups,
	"sort, WebGPU, reduce_reduce_sum_add_parts":                        fewWorkgroups,
	"sort, H200, bf16, scatter_scatter_add":                            fewWorkgroups,
	"sort, WebGPU, scatter_scatter_add":                                fewWorkgroups,
}

// The reasons. The arrays of a kernel are counted as wholes.
const (
	ofStep         = "one step of the arrays of all"
	ofTable        = "the rows of a table that indices name"
	ofFrequencies  = "the low frequencies of a spectrum"
	ofMatrix       = "the diagonal of a matrix"
	inOneWorkgroup = "a whole loop in one workgroup, which saves its launches"
	fewWorkgroups  = "not split, which is to be mended"
)

// TestFamiliesReachTheMemoryFloor estimates for each launch of a training step how long memory traffic and
// latency take with the workgroups that it has, and what its kernel does: sectors, lines and operations, counted by
// package tally. It compares those of a kernel's name with the floor: their bytes at full bandwidth, or the operations of
// the graph at the best rate, and a launch each. A kernel that keeps most of a device idle, or does what nobody asked
// for, is listed here with a reason. [TestHolesAreSeen] breaks schedules to see that it is found.
// It compares memory with the bytes that are live at a time, too.
func TestFamiliesReachTheMemoryFloor(t *testing.T) {
	var table strings.Builder
	for _, target := range familyTargets {
		for i, f := range allFamilies() {
			if testing.Short() && i%shortFamilies != 0 {
				continue
			}
			launches, memory := checkFloor(t, f, target)
			table.WriteString(rowOf(target.name, f.name, target.target().Profile(), launches, memory))
			if target.target().OneArena && !concurrent[f.name] && float64(memory.Planned) > maxOfLive*float64(memory.Live)+overLive {
				t.Errorf("%s, %s: intermediate values take %d bytes, and %d are live at a time", f.name, target.name, memory.Planned, memory.Live)
			}
		}
	}
	if testing.Short() {
		rowsStand(t, "families.txt", table.String())
		return
	}
	for _, keys := range busy {
		for _, key := range keys {
			if !exceeds[key] {
				t.Errorf("%s is named though it takes no longer than it may", key)
			}
		}
	}
	kerneltest.Golden(t, "families.txt", table.String(), *update)
}

// shortFamilies divides the families, of which -short takes the first.
const shortFamilies = 6

// rowsStand fails where a row is not one of a golden table.
func rowsStand(t *testing.T, name, rows string) {
	t.Helper()
	table, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(rows) {
		if !strings.Contains(string(table), row) {
			t.Errorf("%s lacks the row %s", name, row)
		}
	}
}

// exceeds says of kernels by key whether they exceed the bounds.
var exceeds = map[string]bool{}

// checkFloor plans a training step and compares its kernels with the floor.
func checkFloor(t *testing.T, f family, target familyTarget) (launches []plan.Launch, memory plan.Memory) {
	t.Helper()
	step := 0.0
	launches, memory = launchesOf(t, f.loss, target)
	d := target.target().Profile()
	for _, l := range launches {
		step += timeOf(l, d)
	}
	for name, k := range alike(launches, d) {
		key := f.name + ", " + target.name + ", " + name
		over := k.time > maxOfFloor*k.least && k.time > maxOfStep*step
		exceeds[key] = exceeds[key] || over
		if over && slow[key] == "" && !isBusy(key) {
			t.Errorf("%s: %d launches of %d workgroups in all on %d processors take %.0f µs of %.0f, and %.0f at the least; of the longest\n%s", key, k.launches, k.groups, d.Processors, k.time/1e3, step/1e3, k.least/1e3, account(k.longest, d))
		}
	}
	return launches, memory
}

// timeOf predicts the nanoseconds of a launch: by its bytes and the threads that wait for them, and by what its kernel
// does.
func timeOf(l plan.Launch, d hardware.Profile) float64 {
	return max(l.Work.Time(d), d.Launch+l.Counts.Time(d, l.Groups))
}

// floorOf returns the least nanoseconds of a launch: of its bytes at full bandwidth, and of the operations that the
// graph asks for at the best rate for their type.
func floorOf(l plan.Launch, d hardware.Profile) float64 {
	return d.Launch + max(l.Work.Bytes/d.Bandwidth(), l.Needs.Ops.Time(d)/float64(d.Processors), l.Needs.Matrix)
}

// account says what the time of a launch consists of.
func account(l plan.Launch, d hardware.Profile) string {
	only := func(c tally.Counts) float64 { return c.Time(d, l.Groups) / 1e3 }
	c := l.Counts
	return fmt.Sprintf("\t%s, %d workgroups of %d threads: %.1f µs with what it waits for, %.1f of instructions, of them %.1f of integers, %.1f of lines of memory, %.1f of sectors, %.1f of matrix units; it accesses %.1f times the sectors that its bytes take",
		l.Name, l.Groups, l.Threads, l.Work.Time(d)/1e3, only(tally.Counts{Ops: c.Ops}), only(tally.Counts{Ops: tally.Ops{Int: c.Int}}), only(tally.Counts{Lines: c.Lines}),
		only(tally.Counts{Missed: c.Missed, Copied: c.Copied}), only(tally.Counts{Products: c.Products}), c.Sectors/max(1, c.Least))
}

// rowOf is the row of a training step in the table.
func rowOf(target, name string, d hardware.Profile, launches []plan.Launch, memory plan.Memory) string {
	step, floor := 0.0, 0.0
	for _, l := range launches {
		step += l.Work.Time(d)
		floor += d.Launch + l.Work.Bytes/d.Bandwidth()
	}
	return fmt.Sprintf("%-12s %-28s %4d launches %8.0f µs, floor %8.0f, %7.1f MiB, live %7.1f\n",
		target, name, len(launches), step/1e3, floor/1e3, float64(memory.Planned)/(1<<20), float64(memory.Live)/(1<<20))
}

// TestLargeProductsAreScheduledAlike compares a row of the table for which costs beyond 32 bits are compared. It runs where
// an int has 32 bits, too.
func TestLargeProductsAreScheduledAlike(t *testing.T) {
	table, err := os.ReadFile("testdata/families.txt")
	if err != nil {
		t.Fatal(err)
	}
	target := familyTargets[0]
	launches, memory := launchesOf(t, trained(squeezing), target)
	if row := rowOf(target.name, "squeeze and excitation", target.target().Profile(), launches, memory); !strings.Contains(string(table), row) {
		t.Errorf("families.txt has no %s", row)
	}
}

// kernels are the launches of kernels of one name.
type kernels struct {
	launches, groups int
	time, least      float64 // nanoseconds of all: as predicted, and at the least
	longest          plan.Launch
}

// alike sums up launches by their kernels' names, without numbers: those of layers of one kind count together.
func alike(launches []plan.Launch, d hardware.Profile) map[string]kernels {
	out := map[string]kernels{}
	for _, l := range launches {
		name := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, l.Name)
		k := out[name]
		if k.launches == 0 || timeOf(l, d) > timeOf(k.longest, d) {
			k.longest = l
		}
		out[name] = kernels{k.launches + 1, k.groups + l.Groups, k.time + timeOf(l, d), k.least + floorOf(l, d), k.longest}
	}
	return out
}

// launchesOf plans a training step.
func launchesOf(t *testing.T, loss func() (*ir.Graph, error), target familyTarget) (launches []plan.Launch, memory plan.Memory) {
	t.Helper()
	g, err := loss()
	if err == nil {
		g, err = optim.Step(g, "loss", optim.SGD{Momentum: 0.9}, optim.Options{})
	}
	if err == nil && target.half != 0 {
		g, err = passes.Mixed(g, target.half)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("family", ir.Entry{Name: "step", Graph: g})
	if err == nil {
		of := plan.Launches
		if target.counted {
			of = plan.CountedLaunches
		}
		launches, memory, err = of(m, target.target(), target.printer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return launches, memory
}

// TestStepsCompileInTF32 compiles training steps with large and small products of f32 on tensor cores.
func TestStepsCompileInTF32(t *testing.T) {
	for _, f := range families.All {
		if f.Name != "gp" && f.Name != "mamba" {
			continue
		}
		g, _, err := f.Step(gpuTimes)
		if err != nil {
			t.Fatal(err)
		}
		target := hopper()
		target.TF32 = true
		m, err := ir.NewModule("family", ir.Entry{Name: "step", Graph: g})
		if err == nil {
			_, err = plan.Compile(m, target, cudacpp.Printer{})
		}
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}
