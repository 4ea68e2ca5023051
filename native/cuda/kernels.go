//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native/cuda/cubin"
	"github.com/rlx-go/rlx/native/cuda/cudacpp"
	"github.com/rlx-go/rlx/native/cuda/driver"
)

// images returns the cubins of kernels, from the cache or compiled on all cores.
// The error names the kernel.
func images(ctx context.Context, d *driver.Device, kernels []plan.Kernel) ([][]byte, error) {
	store := cubin.Open()
	out, errs := make([][]byte, len(kernels)), make([]error, len(kernels))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(kernels)) {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(kernels) || ctx.Err() != nil {
					return
				}
				if out[i], errs[i] = image(d, store, &kernels[i]); errs[i] != nil {
					next.Store(int64(len(kernels))) // no need of the rest
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, ctx.Err()
}

func image(d *driver.Device, store cubin.Store, k *plan.Kernel) ([]byte, error) {
	l, options := d.Library(), cudacpp.Options(d.Architecture())
	key := cubin.KeyOf(k.Source, l.Compiler, strings.Join(options, " "))
	if image, ok := store.Get(key); ok {
		return image, nil
	}
	image, err := l.Compile(k.Source, options...)
	if err != nil {
		return nil, driver.In(k.Name, err)
	}
	_ = store.Put(key, image) // a cache that cannot be written to costs time only
	return image, nil
}

// load makes the kernels ready to launch.
func (p *program) load(images [][]byte) error {
	for i, image := range images {
		name := p.plan.Kernels[i].Name
		m, err := p.device.LoadModule(image)
		if err != nil {
			return driver.In(name, err)
		}
		p.modules = append(p.modules, m)
		f, err := m.Function(cudacpp.Prefix+name, cudacpp.DynamicShared(p.plan.Kernels[i].SharedBytes))
		if err != nil {
			return driver.In(name, err)
		}
		p.functions = append(p.functions, f)
	}
	return nil
}
