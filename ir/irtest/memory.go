package irtest

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// MemoryJob is a benchmark of an op that is bound by memory: Fill sets the
// parameters of Step, and Step leaves its result in a state "result".
type MemoryJob struct {
	Name       string
	Fill, Step *ir.Graph
	// Bytes is what has to be read and written at least; Keys is the number of
	// keys that are sorted, 0 where none are.
	Bytes, Keys float64
}

// Module joins the two graphs, as entries "fill" and "step".
func (j *MemoryJob) Module() (*ir.Module, error) {
	return ir.NewModule("memory", ir.Entry{Name: "fill", Graph: j.Fill}, ir.Entry{Name: "step", Graph: j.Step})
}

// MemoryJobs returns jobs of scatters, sorts and running combinations whose
// tensors take up to so many bytes.
func MemoryJobs(most int) ([]MemoryJob, error) {
	const width, tokens = 768, 4096
	rows := min(50257, most/4/width)
	lines := min(16384, most/4/4096)
	keys := min(1<<24, most/4)
	var jobs []MemoryJob
	for _, j := range []struct {
		job   MemoryJob
		build func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value
	}{
		{
			MemoryJob{Name: "embedding-gradient", Bytes: 4 * width * float64(rows+3*tokens)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				at := ops.Mul(b, x("at", tokens, 1), ops.Const(b, ir.F32, float64(rows)))
				return ops.ScatterAdd(b, ops.Zeros(b, ir.F32, ir.Dims(rows, width)...), ops.Convert(b, at, ir.I32),
					x("u", tokens, width), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
			},
		},
		{
			MemoryJob{Name: "few-rows-gradient", Bytes: 4 * 384 * 16384},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				at := ops.Mul(b, x("at", 16384, 1), ops.Const(b, ir.F32, 65))
				return ops.ScatterAdd(b, ops.Zeros(b, ir.F32, ir.Dims(65, 384)...), ops.Convert(b, at, ir.I32),
					x("u", 16384, 384), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
			},
		},
		{
			MemoryJob{Name: "sort", Keys: float64(keys)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.Sort(b, ops.SortAttrs{}, x("x", keys))[0]
			},
		},
		{
			MemoryJob{Name: "sort-rows", Keys: 1 << 22},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.Sort(b, ops.SortAttrs{Axis: 1}, x("x", 4096, 1024))[0]
			},
		},
		{
			MemoryJob{Name: "cumsum-rows", Bytes: 8 * 4096 * float64(lines)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.CumSum(b, x("x", lines, 4096), ops.CumSumAttrs{Axis: 1})
			},
		},
		{
			MemoryJob{Name: "cumsum-columns", Bytes: 8 * 4096 * float64(lines)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.CumSum(b, x("x", 4096, lines), ops.CumSumAttrs{})
			},
		},
		{
			MemoryJob{Name: "cumsum-one-row", Bytes: 8 * float64(keys)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.CumSum(b, x("x", keys), ops.CumSumAttrs{})
			},
		},
		{
			MemoryJob{Name: "recurrence-rows", Bytes: 12 * 4096 * float64(lines)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.LinearRecurrence(b, x("x", lines, 4096), x("y", lines, 4096), ops.CumSumAttrs{Axis: 1})
			},
		},
	} {
		made, err := j.job.build(j.build)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, made)
	}
	return jobs, nil
}

func (j MemoryJob) build(result func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value) (MemoryJob, error) {
	shapes := map[string][]int{}
	var names []string
	var err error
	j.Step, err = ir.Build("step", func(b *ir.Builder) {
		y := result(b, func(name string, dims ...int) ir.Value {
			shapes[name], names = dims, append(names, name)
			return b.Param(name, ir.F32, ir.Dims(dims...)...)
		})
		b.State("result", y.DType(), y.Shape()...)
		b.SetState("result", y)
	})
	if err != nil {
		return j, err
	}
	j.Fill, err = ir.Build("fill", func(b *ir.Builder) {
		for i, name := range names {
			shape := ir.Dims(shapes[name]...)
			b.State(name, ir.F32, shape...)
			b.SetState(name, ops.Uniform(b, ops.Key(b, uint64(i+1)), ir.F32, shape...))
		}
	})
	return j, err
}
