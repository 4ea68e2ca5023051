package plan

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sim/tally"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// EncodeUnchecked is [Encode] without validation, to make files of plans that
// are wrong.
func EncodeUnchecked(p *Plan) ([]byte, error) { return encode(p) }

// Launch is a kernel's launch and what costs say of it.
type Launch struct {
	Name            string
	Groups, Threads int // workgroups, and threads of each
	Work            hardware.Work
	Kernel          *loop.Kernel
	Counts          tally.Counts // what [CountedLaunches] counts
	Needs           Needs
}

// registerBytes is how much a thread reads without waiting in between where nothing is
// copied to shared memory: four elements of 4 bytes.
const registerBytes = 16

// Memory is the size of the intermediate values of an entry, in bytes.
type Memory struct {
	Planned int64 // of the buffers
	Live    int64 // of the values that are live at a time, at most
}

// Launches returns the kernel launches of a module's first entry, without horizontally fused maps.
// Those in loops count once.
func Launches(m *ir.Module, t Target, pr Printer) ([]Launch, Memory, error) {
	_, out, used, err := launches(m, t, pr)
	return out, used, err
}

// CountedLaunches is [Launches] with what the kernels do and what their groups need.
func CountedLaunches(m *ir.Module, t Target, pr Printer) ([]Launch, Memory, error) {
	ec, out, used, err := launches(m, t, pr)
	if err != nil {
		return nil, used, err
	}
	counts, needs := map[*loop.Kernel]tally.Counts{}, map[*loop.Kernel]Needs{}
	for _, l := range out {
		if _, known := counts[l.Kernel]; !known {
			counts[l.Kernel] = tally.Of(l.Kernel)
		}
	}
	err = ec.addNeeds(ec.partition, needs, counts)
	for i, l := range out {
		out[i].Counts, out[i].Needs = counts[l.Kernel], needs[l.Kernel]
	}
	return out, used, err
}

func launches(m *ir.Module, t Target, pr Printer) (*entryCompiler, []Launch, Memory, error) {
	c := newCompiler(m, t, pr)
	p, err := c.fuse(m.Entries[0])
	if err != nil {
		return nil, nil, Memory{}, err
	}
	ec := c.newEntry(m.Entries[0], p)
	var used Memory
	measure := func() error {
		used.Live = maxLive(memoryPhase{ec}.liveRanges(ec.partition.Outputs))
		return nil
	}
	for _, phase := range []func() error{ec.schedule, measure, memoryPhase{ec}.placeAll, ec.fuseParts} {
		if err := phase(); err != nil {
			return nil, nil, used, err
		}
	}
	for _, b := range c.plan.Buffers {
		if b.Kind == TempBuffer {
			used.Planned += int64(b.Bytes)
		}
	}
	var out []Launch
	for _, l := range ec.launches {
		if l.Kernel != nil {
			out = append(out, launchOf(l.Kernel, l.Args))
		}
	}
	return ec, out, used, nil
}

func launchOf(k *loop.Kernel, args []*fusion.Tensor) Launch {
	x := Launch{Kernel: k, Name: k.Name, Groups: k.Groups[0] * k.Groups[1] * k.Groups[2], Threads: k.Threads()}
	x.Work.Threads = x.Groups * x.Threads
	for i, arg := range args {
		if arg != nil { // which is the status words
			x.Work.Bytes += min(float64(arg.Bytes()), float64(x.Work.Threads)*accessedBytes(k, i))
		}
	}
	x.Work.BytesInFlight = max(registerBytes, k.SharedBytes()/x.Threads)
	return x
}

// Launches returns the kernel launches of a candidate.
func (x *Choice) Launches(s emit.Schedule) (out []Launch, err error) {
	launches, err := sched.Emit(x.group, s, x.caps)
	for _, l := range launches {
		if l.Kernel == nil {
			return nil, nil
		}
		one := launchOf(l.Kernel, l.Args)
		one.Counts = tally.Of(l.Kernel)
		out = append(out, one)
	}
	return out, err
}

// accessedBytes returns the most bytes of a storage array that a thread of a kernel loads and stores, or infinity where the
// kernel has vectors or copies. A kernel of the samples of a mean reads few elements of a large array, and one
// in a loop of the graph those of a step.
func accessedBytes(k *loop.Kernel, array int) float64 {
	return accessesOf(k.Body, array) * float64(loop.DeviceSize(k.Arrays[array].DType)*k.Arrays[array].Width)
}

// accessesOf returns the most loads and stores of an array by a thread.
func accessesOf(body []loop.Stmt, array int) (count float64) {
	for _, s := range body {
		switch s := s.(type) {
		case *loop.For:
			if n := accessesOf(s.Body, array); n > 0 {
				count += n * trips(s)
			}
		case *loop.If:
			count += loads(s.Cond, array) + accessesOf(s.Then, array) + accessesOf(s.Else, array)
		case *loop.Let, *loop.Var, *loop.Assign, *loop.Barrier, *loop.Shuffle, *loop.Subgroup, *loop.Store:
			if s, ok := s.(*loop.Store); ok && s.Array == array {
				count++
			}
			loop.MapExprs([]loop.Stmt{s}, func(x scalar.Expr) scalar.Expr {
				count += loads(x, array)
				return x
			})
		default:
			return math.Inf(1)
		}
	}
	return count
}

func loads(x scalar.Expr, array int) (count float64) {
	scalar.Walk(x, func(n scalar.Expr) {
		if n.Op == scalar.OpLoad && n.Ref == array {
			count++
		}
	})
	return count
}

// trips returns the most iterations of a loop.
func trips(s *loop.For) float64 {
	low, _, ok := scalar.Range(s.Start)
	_, high, ok2 := scalar.Range(s.End)
	step, ok3 := s.Step.IntConst()
	if !ok || !ok2 || !ok3 {
		return math.Inf(1)
	}
	return max(0, math.Ceil(float64(high-low)/float64(step)))
}
