//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/internal/cuda/driver"
)

// load loads the kernels of the plan from the cache or compiles them, on all cores. The
// error names the kernel.
func (p *program) load(ctx context.Context) error {
	store, n := cubin.Open(), len(p.plan.Kernels)
	constant, images := constants(p.plan), make([][]byte, n)
	err := p.eachKernel(ctx, func(i int) (err error) {
		images[i], err = image(p.device, store, &p.plan.Kernels[i], constant[i]...)
		return err
	})
	if err != nil {
		return err
	}
	p.modules, p.functions = make([]*driver.Module, n), make([]driver.Function, n)
	return p.eachKernel(ctx, func(i int) (err error) {
		if p.modules[i], err = p.device.LoadModule(images[i]); err != nil {
			return err
		}
		k := &p.plan.Kernels[i]
		p.functions[i], err = p.modules[i].Function(cudacpp.Prefix+k.Name, cudacpp.DynamicShared(k.SharedBytes))
		return err
	})
}

// eachKernel calls f with the index of each kernel of the plan, on all cores, until one fails. The error
// names the kernel.
func (p *program) eachKernel(ctx context.Context, f func(i int) error) error {
	n := len(p.plan.Kernels)
	errs := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if errs[i] = f(i); errs[i] != nil {
					next.Store(int64(n)) // stops the other goroutines
				}
			}
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return driver.In(p.plan.Kernels[i].Name, err)
		}
	}
	return ctx.Err()
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
