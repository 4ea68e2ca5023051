//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// The fake's clock goes on by a millisecond with every mark, so that each step takes
// one.
func TestProfileTimesEveryStep(t *testing.T) {
	gpu := fake.Install(t, true)
	fake.Products(t, gpu.Dir, 13)
	p := compile(t, cuda.With(loop.AllProducts), twoProducts(t)).(native.Profiler)
	gpu.Calls(t)
	const runs = 3
	timings, err := p.Profile(context.Background(), "step", runs)
	must(t, err)
	launches, made, destroyed := 0, 0, 0
	for _, s := range timings {
		if s.Time != time.Duration(s.Launches)*time.Millisecond || s.Bytes <= 0 {
			t.Errorf("%s: %d launches take %v, %d bytes", s.Name, s.Launches, s.Time, s.Bytes)
		}
		if isProduct := strings.HasPrefix(s.Name, "product 1×"); isProduct != (s.Operations > 0) {
			t.Errorf("%s makes %g operations", s.Name, s.Operations)
		}
		if s.Name == "product 1×5×9×6_nn f32" && s.Operations != 2*5*9*6 {
			t.Errorf("%s makes %g operations", s.Name, s.Operations)
		}
		launches += s.Launches
	}
	if want := cuda.Launches(p); launches != want || cuda.Calls(p) != 2 {
		t.Errorf("%d launches were timed, not %d:\n%v", launches, want, timings)
	}
	for _, c := range gpu.Calls(t) {
		switch c {
		case "cuEventCreate":
			made++
		case "cuEventDestroy":
			destroyed++
		case "cuGraphLaunch":
			t.Error("a profile launched a graph, whose parts cannot be separated")
		}
	}
	if want := launches + 1; made != want || destroyed != want {
		t.Errorf("%d marks were made and %d given back, not %d", made, destroyed, want)
	}
	if sum := runProducts(t, p); sum != sumOfProducts {
		t.Errorf("after a profile the sum is %g, not %d", sum, sumOfProducts)
	}
	var table strings.Builder
	must(t, native.WriteTimings(&table, timings))
	if lines := strings.Split(strings.TrimSpace(table.String()), "\n"); len(lines) != len(timings)+2 {
		t.Errorf("the table is\n%s", table.String())
	}
}

func TestProfileRefusesUnsupportedPrograms(t *testing.T) {
	fake.Install(t, true)
	p := compile(t, cuda.New(0), twoProducts(t)).(native.Profiler)
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := p.Profile(ctx, "step", 0); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("no runs: %v", err)
	}
	if _, err := p.Profile(ctx, "nothing", 1); !errors.Is(err, ir.ErrName) {
		t.Errorf("no entry: %v", err)
	}
	cancel()
	if _, err := p.Profile(ctx, "step", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a profile that was given up: %v", err)
	}
}
