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
	constant := constants(p.plan)
	p.modules, p.functions = make([]*driver.Module, n), make([]driver.Function, n)
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
				if errs[i] = p.loadKernel(store, i, constant[i]); errs[i] != nil {
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

// loadKernel loads one kernel, with the compiler's options for its constant arrays.
func (p *program) loadKernel(store cubin.Store, i int, constant []string) error {
	k := &p.plan.Kernels[i]
	code, err := image(p.device, store, k, constant...)
	if err != nil {
		return err
	}
	if p.modules[i], err = p.device.LoadModule(code); err != nil {
		return err
	}
	p.functions[i], err = p.modules[i].Function(cudacpp.Prefix+k.Name, cudacpp.DynamicShared(k.SharedBytes))
	return err
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
