package cpu

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// aloneEnv makes the test binary run a test that starts it, instead of starting it again.
const aloneEnv = "RLX_TEST_ALONE"

// Alone reports whether a test runs in a process of its own. If it does not, Alone runs it in one with these variables, and
// fails if it fails there.
func Alone(t *testing.T, environment ...string) bool {
	t.Helper()
	if os.Getenv(aloneEnv) == t.Name() {
		return true
	}
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(append(os.Environ(), environment...), aloneEnv+"="+t.Name())
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// Long returns a backend that counts positions in all arrays in 64 bits.
func Long() native.Backend { return backend{1} }

// LowerComposites returns the graph that the backend compiles for g.
func LowerComposites(g *ir.Graph) (*ir.Graph, error) { return lowerComposites(g) }

// OutsideKernels returns the arithmetic and the loads of a program's first entry that are done lane by lane, not by kernels, in
// groups of some work; none where there are no kernels.
func OutsideKernels(p native.Program) []string {
	if !jit.Available() {
		return nil
	}
	found := map[string]bool{}
	for _, s := range p.(*profiler).p.entries[0].steps {
		var nests []*nestStep
		switch s := s.(type) {
		case *nestStep:
			nests = []*nestStep{s}
		case *piecesStep:
			nests = s.nests
		}
		for _, x := range nests {
			x.n.eachList(func(code *[]instr) {
				for _, in := range *code {
					switch {
					case in.scalar || x.n.cost < chunkCost:
					case in.kind == opLoad && in.at.level == perBlock && x.n.inner.row*x.n.inner.rows >= 256: // one for many inner points
					case in.kind == opApply:
						found[fmt.Sprintf("%s of %s in %s", in.node.Op, in.node.Args[0].Type, x.n.name)] = true
					case in.kind == opLoad && jit.HasGathers(in.buf.dtype) && !in.isContiguous() && (in.at.general || in.at.stride != 0):
						found[fmt.Sprintf("load of %s in %s", in.buf.dtype, x.n.name)] = true
					}
				}
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// SharedBlocks returns the points of a block and the number of blocks in a row of a reduction with rows × row results that takes
// cost nanoseconds, on a number of workers.
func SharedBlocks(rows, row int, cost float64, workers int) (block, blocks int) {
	n := &nest{cost: cost, phases: []*phase{{loop: true}}, outer: space{row: row, rows: rows, block: blockLanes}}
	n.shareBlocks(workers)
	return n.outer.block, n.outer.blocks()
}

// NestChunks returns the nanoseconds that each nest of a graph is estimated to take, and the number of chunks that workers share.
func NestChunks(g *ir.Graph) (work []float64, chunks []int, err error) {
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		return nil, nil, err
	}
	p, err := compile(context.Background(), Backend().(backend), m, native.Budget{Bytes: math.MaxInt64}, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range p.entries[0].steps {
		if s, ok := s.(*nestStep); ok {
			work, chunks = append(work, s.n.work()), append(chunks, s.chunks)
		}
	}
	return work, chunks, nil
}

// RunsOfWindows returns the contiguous runs of each row of the windows in the first product of a program that has one row or
// one column of results, or 0 without one.
func RunsOfWindows(p native.Program) int {
	for _, s := range p.(*profiler).p.entries[0].steps {
		if x, ok := s.(*productStep); ok && min(x.m, x.n) == 1 {
			if x.m == 1 {
				return simd.Runs(x.b.rowAt)
			}
			return simd.Runs(x.a.colAt)
		}
	}
	return 0
}

// DividedProduct returns the chunks of a batch of products of a size for a number of workers: their number, and by how much
// the worker with most chunks has more than the mean.
func DividedProduct(count, m, n, k, workers int) (chunks int, excess float64) {
	x := &matrixProduct{count: count, m: m, n: n, k: k}
	x.cost = x.estimate()
	p := &productStep{matrixProduct: x}
	p.divide(workers)
	chunks = p.chunks()
	return chunks, float64((chunks+workers-1)/workers*workers)/float64(chunks) - 1
}
