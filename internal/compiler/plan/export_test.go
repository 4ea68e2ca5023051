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

// Launches returns the kernel launches of a module's first entry, without horizontally fused maps.
// Those in loops count once.
func Launches(m *ir.Module, t Target, pr Printer) ([]Launch, error) {
	c := newCompiler(m, t, pr)
	p, err := c.fuse(m.Entries[0])
	if err != nil {
		return nil, err
	}
	ec := c.newEntry(m.Entries[0], p)
	if err := ec.compile(); err != nil {
		return nil, err
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
	return out, nil
}
