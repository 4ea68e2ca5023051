package irtest

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// MemoryJob is a benchmark of a memory-bound op: Fill sets the parameters of Step, and
// Step stores its result in a state "result".
type MemoryJob struct {
	Name       string
	Fill, Step *ir.Graph
	// Bytes is the minimum traffic; Keys is the number of sorted keys, 0 if there is no sort.
	Bytes, Keys float64
}

// Module joins the two graphs, as entries "fill" and "step".
func (j *MemoryJob) Module() (*ir.Module, error) {
	return ir.NewModule("memory", ir.Entry{Name: "fill", Graph: j.Fill}, ir.Entry{Name: "step", Graph: j.Step})
}

// memoryCase is a job before it is built: result computes from parameters x.
type memoryCase struct {
	job    MemoryJob
	result func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value
}

// MemoryJobs returns jobs of scatters, sorts, scans, maps and layout changes with tensors
// of at most the given bytes.
func MemoryJobs(limit int) ([]MemoryJob, error) {
	var jobs []MemoryJob
	for _, c := range slices.Concat(updateCases(limit), orderCases(limit), topCases(limit), streamCases(limit)) {
		made, err := c.job.build(c.result)
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
