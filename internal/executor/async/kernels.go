package async

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// EachKernel calls f for each kernel of a plan in parallel, on all cores, until one fails. It returns the error of
// the first kernel that failed, or that of the context.
func EachKernel(ctx context.Context, kernels []plan.Kernel, f func(i int, k *plan.Kernel) error) error {
	errs := make([]error, len(kernels))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(kernels)) {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(kernels) {
					return
				}
				if errs[i] = f(i, &kernels[i]); errs[i] != nil {
					next.Store(int64(len(kernels))) // stops the other goroutines
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
