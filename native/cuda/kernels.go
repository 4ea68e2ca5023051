//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/executor/async"
)

// load loads the kernels of the plan from the cache or compiles them, on all cores. The
// error names the kernel.
func (p *program) load(ctx context.Context) error {
	store, kernels := cubin.Open(), p.plan.Kernels
	constant, images := constants(p.plan), make([][]byte, len(kernels))
	err := async.EachKernel(ctx, kernels, func(i int, k *plan.Kernel) (err error) {
		images[i], err = image(p.device, store, k, constant[i]...)
		return err
	})
	if err != nil {
		return err
	}
	p.modules, p.functions = make([]*driver.Module, len(kernels)), make([]driver.Function, len(kernels))
	return async.EachKernel(ctx, kernels, func(i int, k *plan.Kernel) (err error) {
		if p.modules[i], err = p.device.LoadModule(images[i]); err == nil {
			p.functions[i], err = p.modules[i].Function(cudacpp.Prefix+k.Name, cudacpp.DynamicShared(k.SharedBytes))
		}
		return driver.In(k.Name, err)
	})
}

// image returns the code of a kernel for the device, compiled with additional options.
func image(d *device, store cubin.Store, k *plan.Kernel, options ...string) ([]byte, error) {
	return imageAs(d, store, k, d.Compiler.Code, options...)
}

// imageAs returns the code of a kernel as a cubin, or as PTX.
func imageAs(d *device, store cubin.Store, k *plan.Kernel, code driver.Code, options ...string) ([]byte, error) {
	options = append(cudacpp.Options(code.Architecture(d.wgmma)), options...)
	key := cubin.KeyOf(k.Source, d.Compiler.Version, strings.Join(options, " "))
	if image, ok := store.Get(key); ok {
		return image, nil
	}
	image, err := d.Compiler.Compile(k.Source, code, options...)
	if err != nil {
		return nil, driver.In(k.Name, err)
	}
	_ = store.Put(key, image) // a cache that cannot be written to costs time only
	return image, nil
}
