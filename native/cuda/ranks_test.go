//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
	"github.com/rlx-go/rlx/native/collective/tcp"
	"github.com/rlx-go/rlx/native/cuda"
)

// rankVariable has the job of a process of [runRanks].
const rankVariable = "RLX_TEST_CUDA_RANK"

// jobs are what processes of several ranks do.
var jobs = map[string]func(ctx context.Context, r *rank) error{
	"collectives": collectivesOfARank, "outside of graphs": collectivesOfARank,
	"curve": curveOfARank, "small curve": curveOfARank, "curve sharded": curveOfARank, "small curve sharded": curveOfARank,
	"curve params": curveOfARank, "small curve params": curveOfARank, "small curve partition": curveOfARank,
	"curve ring": curveOfARank, "small curve ring": curveOfARank, "ring time": ringOfARank,
	"llama 8B": decodeOfARank, "llama 70B": decodeOfARank, "7B params": largeOfARank,
	"gpt2 sharded": gpt2OfARank, "gpt2": gpt2OfARank, "bandwidth": bandwidthOfARank,
	"killed": stepsOfARank, "late": stepsOfARank, "plan": stepsOfARank, "refused": stepsOfARank, "broken": stepsOfARank,
}

// sessionJobs are what processes do that open a session as users do.
var sessionJobs = map[string]func(ctx context.Context, job string) error{
	"open": openOfARank, "tensor": tensorOfARank, "tensor sequence": tensorOfARank, "small tensor": tensorOfARank,
}

// rank is a process of a job.
type rank struct {
	launch.Run
	t       *testing.T
	job     string
	group   *collective.Group
	backend native.Backend
}

// TestRank is one process of a job, if the variable names one.
func TestRank(t *testing.T) {
	job := os.Getenv(rankVariable)
	if job == "" {
		return
	}
	if own := sessionJobs[job]; own != nil {
		must(t, own(t.Context(), job))
		return
	}
	run, err := launch.Environment()
	must(t, err)
	deadline := time.Minute
	if job == "late" || job == "killed" {
		deadline = 2 * time.Second
	}
	group, err := tcp.Join(t.Context(), run, collective.Options{Deadline: deadline})
	must(t, err)
	b := cuda.New(run.LocalRank)
	if strings.HasPrefix(job, "serial ") {
		b = cuda.Serial(run.LocalRank)
	}
	job = strings.TrimPrefix(job, "serial ")
	err = jobs[job](t.Context(), &rank{run, t, job, group, b})
	var e *collective.Error
	fmt.Printf("ended, typed %t: %v\n", errors.As(err, &e), err)
	must(t, group.Close())
}

// runRanks runs a job with n processes on the devices 0 to n-1 and returns what each has written.
func runRanks(t testing.TB, job string, n int) []string {
	t.Helper()
	t.Setenv(rankVariable, job)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := launch.Start(ctx, n, []string{os.Args[0], "-test.run=^TestRank$", "-test.v"}, &out, &out); err != nil && job != "killed" {
		t.Errorf("%v\n%s", err, &out)
	}
	said := make([]string, n)
	for line := range strings.Lines(out.String()) {
		for i := range said {
			if text, ok := strings.CutPrefix(line, fmt.Sprintf("[%d] ", i)); ok {
				said[i] += text
			}
		}
	}
	return said
}

func fakeRanks(t *testing.T) {
	g := fake.Install(t, true)
	fake.Collectives(t, g.Dir)
	t.Setenv("RLX_FAKE_DEVICES", "4")
	t.Setenv("RLX_NCCL", "")
}

// TestRanksExchangeByAFakeNCCL runs all collectives, of the whole mesh and along its axes, in graphs
// and outside.
func TestRanksExchangeByAFakeNCCL(t *testing.T) {
	fakeRanks(t)
	exchange(t, 2, 4)
}

// TestGPURanksExchange does so on GPUs, two of which it needs.
func TestGPURanksExchange(t *testing.T) {
	gpu(t)
	if err := cuda.New(1).Probe(); err != nil {
		t.Logf("one GPU: %v", err)
		return
	}
	exchange(t, 2)
}

func exchange(t *testing.T, sizes ...int) {
	for _, job := range []string{"collectives", "serial collectives", "outside of graphs"} {
		t.Setenv("RLX_CUDA_DEBUG", map[string]string{"outside of graphs": "1"}[job])
		for _, n := range sizes {
			for i, said := range runRanks(t, job, n) {
				if !strings.Contains(said, "ended, typed false: <nil>") {
					t.Errorf("%s, rank %d of %d: %s", job, i, n, said)
				}
			}
		}
	}
}

// length is the number of elements of a part of an array of the collectives.
const length = 5

// collectives is a graph of all collectives of n ranks, of which half are along each axis of a mesh
// if there are four.
func collectives(n int) (*ir.Graph, error) {
	all := ops.MeshAttrs{MeshAxis: "all", Devices: n}
	if n == 4 {
		all = ops.MeshAttrs{MeshAxis: "b", Devices: 2}
	}
	m := all.Devices
	return ir.Build("collectives", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(m*length))
		rows := ops.Reshape(b, x, ir.N(m), ir.N(length))
		next := make([]int, m)
		ranks := make([]int, m)
		for i := range next {
			ranks[i], next[i] = i, (i+1)%m
		}
		for _, reduction := range []string{ops.AllReduceSum, ops.AllReduceMean, ops.AllReduceMax, ops.AllReduceMin} {
			b.Output(reduction, ops.AllReduce(b, x, all, reduction))
		}
		for _, d := range []ir.DType{ir.BF16, ir.I32} {
			b.Output("sum "+d.String(), ops.Convert(b, ops.AllReduce(b, ops.Convert(b, x, d), all, ops.AllReduceSum), ir.F32))
		}
		b.Output("gather", ops.AllGather(b, rows, all, 0))
		b.Output("gather 1", ops.AllGather(b, rows, all, 1))
		b.Output("gather bool", ops.Convert(b, ops.AllGather(b, ops.Gt(b, x, ops.Const(b, ir.F32, 4)), all, 0), ir.F32))
		b.Output("scatter", ops.ReduceScatter(b, rows, all, 0))
		b.Output("to all", ops.AllToAll(b, rows, all, 0, 0))
		b.Output("shift", ops.CollectivePermute(b, x, all, ranks, next))
		b.Output("one", ops.CollectivePermute(b, x, all, []int{0}, []int{1}))
		b.Output("broadcast", ops.CollectiveBroadcast(b, x, all, 1))
		b.Output("index", ops.Convert(b, ops.AxisIndex(b, all), ir.F32))
		if n == 4 {
			b.Output("other axis", ops.AllReduce(b, x, ops.MeshAttrs{MeshAxis: "a", Devices: 2}, ops.AllReduceSum))
		}
	})
}

// summedInLoop is a graph of a loop that halves the sum over ranks three times.
func summedInLoop(mesh ops.MeshAttrs) (*ir.Graph, error) {
	return ir.Build("loop", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(mesh.Devices*length))
		carries, _ := ops.Scan(b, ops.Loop{Carries: []ir.Value{x}, Length: ir.N(3), Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
			sum := ops.AllReduce(b, c[0], mesh, ops.AllReduceSum)
			return []ir.Value{ops.Mul(b, sum, ops.ConstLike(b, sum, 0.5))}, nil
		}})
		b.Output("loop", carries[0])
	})
}

// meshOf arranges four ranks in two axes, and others in one.
func meshOf(ctx context.Context, g *collective.Group) (*collective.Mesh, ops.MeshAttrs, error) {
	if g.Size() == 4 {
		m, err := collective.NewMesh(ctx, g, collective.Axis{Name: "a", Size: 2}, collective.Axis{Name: "b", Size: 2})
		return m, ops.MeshAttrs{MeshAxis: "b", Devices: 2}, err
	}
	m, err := collective.NewMesh(ctx, g, collective.Axis{Name: "all", Size: g.Size()})
	return m, ops.MeshAttrs{MeshAxis: "all", Devices: g.Size()}, err
}

// number is element i of the array of a rank.
func number(rank, i int) float32 { return float32((rank + 1) * (i + 1)) }

// expected are the results on a rank of m along an axis, of which first is the first in the group of
// all, by their definitions.
func expected(me, m, first int) map[string][]float32 {
	out := map[string][]float32{"index": {float32(me)}}
	add := func(name string, x float32) { out[name] = append(out[name], x) }
	previous := (me + m - 1) % m
	for i := range m * length {
		sum, least, most := float32(0), number(first, i), number(first+m-1, i)
		for r := range m {
			sum += number(first+r, i)
		}
		for _, name := range []string{"sum", "sum bf16", "sum i32"} {
			add(name, sum)
		}
		add("mean", sum/float32(m))
		add("min", least)
		add("max", most)
		if i/length == me {
			add("scatter", sum)
		}
		add("to all", number(first+i/length, me*length+i%length))
		add("shift", number(first+previous, i))
		add("broadcast", number(first+1, i))
		add("one", map[bool]float32{true: number(first, i)}[me == 1])
		for range 2 {
			sum *= float32(m) / 2
		}
		add("loop", sum/2)
	}
	for r := range m {
		for i := range m * length {
			add("gather", number(first+r, i))
			add("gather bool", map[bool]float32{true: 1}[number(first+r, i) > 4])
		}
	}
	for row := range m {
		for r := range m {
			for i := range length {
				add("gather 1", number(first+r, row*length+i))
			}
		}
	}
	return out
}

// collectivesOfARank runs the graphs three times and compares the results.
func collectivesOfARank(ctx context.Context, r *rank) error {
	mesh, axis, err := meshOf(ctx, r.group)
	if err != nil {
		return err
	}
	g, err := collectives(r.Size)
	if err != nil {
		return err
	}
	inLoop, err := summedInLoop(axis)
	if err != nil {
		return err
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "collectives", Graph: g}, ir.Entry{Name: "loop", Graph: inLoop})
	if err != nil {
		return err
	}
	p, err := r.backend.Compile(ctx, m, native.Options{Mesh: mesh})
	if err != nil {
		return err
	}
	along := mesh.Along(axis.MeshAxis)
	first := r.Rank - along.Rank()
	want := expected(along.Rank(), axis.Devices, first)
	x := make([]float32, axis.Devices*length)
	for i := range x {
		x[i] = number(r.Rank, i)
		want["other axis"] = append(want["other axis"], number(r.Rank, i)+number((r.Rank+2)%4, i))
	}
	for range 3 {
		for _, entry := range p.Entries() {
			run, err := p.Run(ctx, entry, map[string]native.Tensor{"x": native.Float32s(x, len(x))})
			if err != nil {
				return err
			}
			out, err := run.Wait(ctx)
			if err != nil {
				return err
			}
			for name, t := range out {
				if got, err := t.Float32s(); err != nil || !slices.Equal(got, want[name]) {
					return fmt.Errorf("%q is %v, not %v: %w", name, got, want[name], err)
				}
			}
		}
	}
	if text := r.group.FormatRecord(); r.Size == 2 && !strings.Contains(text, `entry "loop", step 3, 40 bytes`) {
		return fmt.Errorf("the record lacks the last collective:\n%s", text)
	}
	return p.Close(ctx)
}

// stepsOfARank adds the sum over ranks to a state until a step fails, for which rank 1 has a fault.
func stepsOfARank(ctx context.Context, r *rank) error {
	mesh, axis, err := meshOf(ctx, r.group)
	if err != nil {
		return err
	}
	factor, guilty := 1.0, r.Rank == 1
	if guilty && r.job == "plan" {
		factor = 2
	}
	if guilty && r.job == "broken" {
		os.Setenv("RLX_FAKE_NCCL", "6")
	}
	g, err := ir.Build("steps", func(b *ir.Builder) {
		x := b.State("x", ir.F32, ir.N(1000))
		sum := ops.AllReduce(b, x, axis, ops.AllReduceSum)
		b.SetState("x", ops.Add(b, x, ops.Mul(b, sum, ops.ConstLike(b, sum, factor))))
		b.Output("first", ops.SliceAxis(b, sum, 0, ir.N(0), ir.N(1)))
	})
	if err != nil {
		return err
	}
	if r.job == "refused" && guilty {
		mesh, err = collective.NewMesh(ctx, r.group, collective.Axis{Name: "other", Size: r.Size})
		if err != nil {
			return err
		}
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		return err
	}
	p, err := r.backend.Compile(ctx, m, native.Options{Mesh: mesh})
	if err != nil {
		return err
	}
	for step := range 1000 {
		if guilty && step == 5 {
			switch r.job {
			case "killed":
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				time.Sleep(time.Minute)
			case "late":
				time.Sleep(2500 * time.Millisecond) // the deadline is 2 s
			}
		}
		run, err := p.Run(ctx, "step", nil)
		if err == nil {
			_, err = run.Wait(ctx)
		}
		if err != nil {
			if _, later := p.Run(ctx, "step", nil); later == nil {
				return fmt.Errorf("a run after %w", err)
			}
			return errors.Join(err, p.Close(ctx))
		}
	}
	return nil
}

// TestARankThatFailsEndsTheOthersOnFakeGPUs: a rank is killed, late, has another plan, cannot compile
// its own, or has a failure of NCCL, and each other rank ends by a typed error, soon.
func TestARankThatFailsEndsTheOthersOnFakeGPUs(t *testing.T) {
	fakeRanks(t)
	failures(t, map[string][]string{
		"killed":  {collective.ErrPeer.Error(), "rank 1", `of entry "step", step 6`, "4000 bytes"},
		"late":    {collective.ErrDeadline.Error(), `of entry "step", step 6`},
		"plan":    {collective.ErrMismatch.Error(), `the plan of module "m"`},
		"refused": {collective.ErrMismatch.Error(), `the plan of module "m"`},
		"broken":  {collective.ErrAborted.Error(), "rank 1"},
	})
}

// TestGPUARankThatFailsEndsTheOthers kills a rank on GPUs, two of which it needs.
func TestGPUARankThatFailsEndsTheOthers(t *testing.T) {
	gpu(t)
	if err := cuda.New(1).Probe(); err != nil {
		t.Logf("one GPU: %v", err)
		return
	}
	failures(t, map[string][]string{
		"killed": {collective.ErrPeer.Error(), "rank 1", `of entry "step", step 6`, "4000 bytes"},
		"late":   {collective.ErrDeadline.Error()},
	})
}

func failures(t *testing.T, wants map[string][]string) {
	for job, want := range wants {
		t.Run(job, func(t *testing.T) {
			said := runRanks(t, job, 2)[0]
			if !strings.Contains(said, "ended, typed true") {
				t.Errorf("no typed error: %s", said)
			}
			for _, text := range want {
				if !strings.Contains(said, text) {
					t.Errorf("the error lacks %q: %s", text, said)
				}
			}
		})
	}
}

// openOfARank prints the device that a process takes, and its group.
func openOfARank(ctx context.Context, _ string) error {
	s, err := rlx.Open("cuda")
	if err != nil {
		return err
	}
	named, err := rlx.Open("cuda:0")
	if err != nil {
		return err
	}
	g, err := s.Group(ctx, collective.Options{Deadline: time.Minute})
	if err != nil {
		return fmt.Errorf("the group of %q: %w", s.Device().Name, err)
	}
	fmt.Printf("device %s, named %s, rank %d of %d\n", s.Device().Name, named.Device().Name, g.Rank(), g.Size())
	return g.Close()
}

// TestAProcessTakesTheDeviceOfItsNumber, or the only one that it sees; one that is named is taken.
func TestAProcessTakesTheDeviceOfItsNumber(t *testing.T) {
	fakeRanks(t)
	for devices, second := range map[string]string{"4": "cuda:1", "1": "cuda"} {
		t.Setenv("RLX_FAKE_DEVICES", devices)
		said := runRanks(t, "open", 2)
		for i, want := range []string{"device cuda, named cuda:0, rank 0 of 2", "device " + second + ", named cuda:0, rank 1 of 2"} {
			if !strings.Contains(strings.ReplaceAll(said[i], "named cuda,", "named cuda:0,"), want) {
				t.Errorf("with %s devices, %s", devices, said[i])
			}
		}
	}
}
