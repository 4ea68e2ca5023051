package plan

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
)

// EncodeUnchecked is [Encode] without validation, to make files of plans that
// are wrong.
func EncodeUnchecked(p *Plan) ([]byte, error) { return encode(p) }

// Launch is a kernel's launch and what costs say of it.
type Launch struct {
	Name            string
	Groups, Threads int // workgroups, and threads of each
	Work            hardware.Work
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
	c := newCompiler(m, t, pr)
	p, err := c.fuse(m.Entries[0])
	if err != nil {
		return nil, Memory{}, err
	}
	ec := c.newEntry(m.Entries[0], p)
	var used Memory
	measure := func() error {
		used.Live = maxLive(ec.liveRanges(ec.partition.Outputs))
		return nil
	}
	for _, phase := range []func() error{ec.schedule, measure, ec.placeAll, ec.fuseParts} {
		if err := phase(); err != nil {
			return nil, used, err
		}
	}
	for _, b := range c.plan.Buffers {
		if b.Kind == TempBuffer {
			used.Planned += int64(b.Bytes)
		}
	}
	var out []Launch
	for _, l := range ec.launches {
		k := l.Kernel
		if k == nil {
			continue
		}
		x := Launch{Name: k.Name, Groups: k.Groups[0] * k.Groups[1] * k.Groups[2], Threads: k.Threads()}
		for _, arg := range l.Args {
			if arg != nil { // which is the status words
				x.Work.Bytes += float64(arg.Bytes())
			}
		}
		x.Work.Threads = x.Groups * x.Threads
		x.Work.BytesInFlight = max(registerBytes, k.SharedBytes()/x.Threads)
		out = append(out, x)
	}
	return out, used, nil
}
