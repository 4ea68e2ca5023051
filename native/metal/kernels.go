//go:build cgo && (darwin || linux)

package metal

import (
	"context"

	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/internal/metal/driver"
)

// load compiles the plan's kernels on all cores: first the functions, then the pipelines,
// from the cache if possible. The error names the kernel.
func (p *program) load(ctx context.Context) error {
	kernels := p.plan.Kernels
	functions := make([]driver.Function, len(kernels))
	made := make([]bool, len(kernels))
	defer func() {
		for i, f := range functions {
			if made[i] {
				f.Release()
			}
		}
	}()
	err := async.EachKernel(ctx, kernels, func(i int, k *plan.Kernel) (err error) {
		functions[i], err = p.device.Compile(k.Source, msl.Prefix+k.Name)
		made[i] = err == nil
		return in(k.Name, err)
	})
	if err != nil {
		return err
	}
	c := openCache(p.device.Device, kernels)
	defer c.close()
	pipelines := make([]driver.Pipeline, len(kernels))
	ready := make([]bool, len(kernels))
	err = async.EachKernel(ctx, kernels, func(i int, k *plan.Kernel) (err error) {
		threads := k.Workgroup[0] * k.Workgroup[1] * k.Workgroup[2]
		pipelines[i], err = p.device.NewPipeline(functions[i], threads, c.archive, c.fresh)
		ready[i] = err == nil
		return in(k.Name, err)
	})
	for i, x := range pipelines {
		if ready[i] {
			p.pipelines = append(p.pipelines, x)
		}
	}
	return err
}
