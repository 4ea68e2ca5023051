//go:build unix

package cpu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
	"github.com/rlx-go/rlx/native/collective/tcp"
	"github.com/rlx-go/rlx/native/cpu"
)

// faultVariable selects the fault of a process of [TestAProcessThatFailsEndsTheOthers].
const faultVariable = "RLX_TEST_RANK_FAULT"

// counting adds the sum of x over ranks to a state. With another scale it is another plan.
func counting(ranks int, scale float64) *ir.Graph {
	g, err := ir.Build("counting", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(1000))
		sum := ops.AllReduce(b, x, ops.MeshAttrs{MeshAxis: "data", Devices: ranks}, ops.AllReduceSum)
		b.SetState("total", ops.Add(b, b.State("total", ir.F32, ir.N(1000)), ops.Mul(b, sum, ops.Const(b, ir.F32, scale))))
	})
	if err != nil {
		panic(err)
	}
	return g
}

// rankOfTest is one process of the test: it makes steps until it fails, and prints how.
func rankOfTest(ctx context.Context, fault string) error {
	run, err := launch.Environment()
	if err != nil {
		return err
	}
	group, err := tcp.Join(ctx, run, collective.Options{Deadline: 2 * time.Second})
	if err != nil {
		return err
	}
	mesh, err := collective.NewMesh(ctx, group, collective.Axis{Name: "data", Size: run.Size})
	if err != nil {
		return err
	}
	scale, guilty := 1.0, run.Rank == 1
	if guilty && fault == "plan" {
		scale = 2
	}
	m, err := moduleOf(counting(run.Size, scale))
	if err != nil {
		return err
	}
	p, err := cpu.Backend().Compile(ctx, m, native.Options{Mesh: mesh})
	if err != nil {
		return err
	}
	ones := native.FromArray(ir.Floats(ir.F32, make([]float64, 1000), 1000))
	for step := 0; ; step++ {
		if guilty && step == 5 {
			switch fault {
			case "killed":
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				time.Sleep(time.Minute)
			case "stopped":
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				time.Sleep(time.Minute) // the signal takes effect a little later
			case "late":
				time.Sleep(2500 * time.Millisecond) // the deadline is 2 s
			}
		}
		r, err := p.Run(ctx, "run", map[string]native.Tensor{"x": ones})
		if err == nil {
			_, err = r.Wait(ctx)
		}
		if err != nil {
			if _, kept := p.Get(ctx, "total"); kept != nil {
				return kept
			}
			return err
		}
	}
}

var namesStep = regexp.MustCompile(`entry "run", step [56] `)

// TestAProcessThatFailsEndsTheOthers: a rank is killed, stopped, late, or has another plan, and
// each other rank ends by a typed error, soon.
func TestAProcessThatFailsEndsTheOthers(t *testing.T) {
	if fault := os.Getenv(faultVariable); fault != "" {
		err := rankOfTest(t.Context(), fault)
		var e *collective.Error
		fmt.Printf("typed %t: %v\n", errors.As(err, &e), err)
		os.Exit(0)
	}
	const ranks = 3
	for fault, want := range map[string][]string{
		"killed":  {collective.ErrPeer.Error()},
		"stopped": {collective.ErrDeadline.Error()},
		"late":    {collective.ErrDeadline.Error()},
		"plan":    {`the plan of module "m"`, collective.ErrMismatch.Error()},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := l.Addr().String()
			l.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // by then they have failed by themselves
			defer cancel()
			processes, outputs := make([]*exec.Cmd, ranks), make([]io.ReadCloser, ranks)
			for rank := range processes {
				c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAProcessThatFailsEndsTheOthers$")
				c.Env = append(os.Environ(), faultVariable+"="+fault, "RLX_ADDRESS="+address, fmt.Sprint("RLX_RANK=", rank), fmt.Sprint("RLX_SIZE=", ranks))
				if outputs[rank], err = c.StdoutPipe(); err != nil {
					t.Fatal(err)
				}
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				processes[rank] = c
			}
			defer func() {
				for _, c := range processes {
					_ = c.Process.Kill()
					_ = c.Wait()
				}
			}()
			for _, rank := range []int{0, 2} {
				text, err := io.ReadAll(outputs[rank])
				if err != nil || !strings.HasPrefix(string(text), "typed true") {
					t.Errorf("rank %d: %s, %v", rank, text, err)
				}
				for _, part := range want {
					if !strings.Contains(string(text), part) {
						t.Errorf("rank %d does not say %q: %s", rank, part, text)
					}
				}
				// A rank that is lost after step 5 may have results of it that another still waits for.
				if fault != "plan" && !namesStep.Match(text) {
					t.Errorf("rank %d does not name the step: %s", rank, text)
				}
			}
		})
	}
}

// TestARankThatFailsAloneLeavesStatesUnchanged: an index out of range on one rank, before the
// collective, is an error on all ranks, and no rank writes its state.
func TestARankThatFailsAloneLeavesStatesUnchanged(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		i := ops.Add(b, b.Input("i", ir.I32), ops.Const(b, ir.I32, 0))
		x := ops.Take(b, ops.Iota(b, ir.F32, 0, ir.N(4)), ops.CheckIndex(b, ops.Mul(b, i, i), ir.N(4), "i"), 0, ops.OutsideClip)
		sum := ops.AllReduce(b, x, ops.MeshAttrs{MeshAxis: "data", Devices: 2}, ops.AllReduceSum)
		b.SetState("n", ops.Add(b, b.State("n", ir.F32), sum))
		b.Output("sum", sum)
	})
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := collective.Local(2, collective.Options{Deadline: 5 * time.Second}), make(chan error, 2)
	for rank, group := range groups {
		go func() {
			errs <- func() error {
				m, err := moduleOf(g)
				if err != nil {
					return err
				}
				mesh, err := collective.NewMesh(t.Context(), group, collective.Axis{Name: "data", Size: 2})
				if err != nil {
					return err
				}
				p, err := cpu.Backend().Compile(t.Context(), m, native.Options{Mesh: mesh})
				if err != nil {
					return err
				}
				for step, i := range []int32{1, int32(1 + rank)} {
					r, err := p.Run(t.Context(), "run", map[string]native.Tensor{"i": native.Int32(i)})
					if err == nil {
						_, err = r.Wait(t.Context())
					}
					if (err == nil) != (step == 0) {
						return fmt.Errorf("step %d: %w", step, err)
					}
					var e *collective.Error
					if step == 1 && rank == 0 && !errors.As(err, &e) || step == 1 && rank == 1 && !errors.Is(err, ir.ErrIndex) {
						return fmt.Errorf("step %d: %w", step, err)
					}
				}
				n, err := p.Get(t.Context(), "n")
				if err != nil {
					return err
				}
				if x, err := n.Float32s(); err != nil || x[0] != 2 {
					return fmt.Errorf("the state is %v, %w", x, err)
				}
				return nil
			}()
		}()
	}
	for range groups {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestCollectivesThatNoMeshHasAreRefused when the program is compiled.
func TestCollectivesThatNoMeshHasAreRefused(t *testing.T) {
	mesh, err := collective.NewMesh(t.Context(), collective.Local(1, collective.Options{})[0], collective.Axis{Name: "data", Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	inCond, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32)
		b.Output("y", ops.Cond(b, ops.Lt(b, x, ops.Const(b, ir.F32, 0)), []ir.Value{x},
			func(b *ir.Builder, in []ir.Value) []ir.Value {
				return []ir.Value{ops.AllReduce(b, in[0], ops.MeshAttrs{MeshAxis: "data", Devices: 2}, ops.AllReduceSum)}
			},
			func(_ *ir.Builder, in []ir.Value) []ir.Value { return in })[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		g    *ir.Graph
		mesh *collective.Mesh
		text string
	}{
		{counting(2, 1), nil, "no mesh is given"},
		{counting(2, 1), mesh, "the mesh is data=1"},
		{inCond, nil, "a collective in cond"},
	} {
		m, err := moduleOf(c.g)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cpu.Backend().Compile(t.Context(), m, native.Options{Mesh: c.mesh}); !errors.Is(err, ir.ErrUnsupported) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v", err)
		}
	}
}

// TestALostRankLeavesAllStatesUnchanged, also one whose new value is computed before the collective,
// which reads it.
func TestALostRankLeavesAllStatesUnchanged(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		next := ops.Add(b, b.State("count", ir.F32, ir.N(5000)), ops.Const(b, ir.F32, 1))
		b.SetState("count", next)
		sum := ops.AllReduce(b, ops.Mul(b, b.Input("x", ir.F32), ops.Mean(b, next)), ops.MeshAttrs{MeshAxis: "data", Devices: 2}, ops.AllReduceSum)
		b.SetState("total", ops.Add(b, b.State("total", ir.F32), sum))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := moduleOf(g)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := collective.Local(2, collective.Options{Deadline: 5 * time.Second}), make(chan error, 2)
	step := func(p native.Program) error {
		r, err := p.Run(t.Context(), "run", map[string]native.Tensor{"x": native.Float32(3)})
		if err == nil {
			_, err = r.Wait(t.Context())
		}
		return err
	}
	rankOf := func(group *collective.Group) error {
		mesh, err := collective.NewMesh(t.Context(), group, collective.Axis{Name: "data", Size: 2})
		if err != nil {
			return err
		}
		p, err := cpu.Backend().Compile(t.Context(), m, native.Options{Mesh: mesh})
		if err != nil {
			return err
		}
		if err := step(p); err != nil {
			return err
		}
		if group.Rank() == 1 {
			group.Abort(errors.New("no more"))
			return nil
		}
		var e *collective.Error
		if err := step(p); !errors.As(err, &e) {
			return fmt.Errorf("the second step: %w", err)
		}
		for name, want := range map[string]float32{"count": 1, "total": 6} {
			x, err := p.Get(t.Context(), name)
			if err != nil {
				return err
			}
			if got, err := x.Float32s(); err != nil || got[0] != want {
				return fmt.Errorf("%s begins with %v, not %v: %w", name, got[:1], want, err)
			}
		}
		return nil
	}
	for _, group := range groups {
		go func() { errs <- rankOf(group) }()
	}
	for range groups {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
