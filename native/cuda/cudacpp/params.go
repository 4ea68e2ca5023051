package cudacpp

import (
	"encoding/binary"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Params returns the bytes of a kernel's struct parameter, none where it has no
// such parameter: the scalars, each aligned to its size, then the counts of the
// enclosing repeats, outermost first. There must be as many of both as k
// declares.
func Params(k *kernel.Kernel, scalars []scalar.Value, counters []int) []byte {
	var out []byte
	add := func(bits uint64, size int) {
		out = append(out, make([]byte, -len(out)&(size-1))...)
		out = append(out, binary.LittleEndian.AppendUint64(nil, bits)[:size]...)
	}
	for i, t := range k.Scalars {
		switch {
		case t == dtype.Invalid:
			add(0, 4)
		case t.IsFloat():
			add(t.FloatBits(scalars[i].F), t.Size())
		default:
			add(uint64(scalars[i].I), kernel.DeviceSize(t))
		}
	}
	for d := range k.Counters {
		add(uint64(counters[d]), 4)
	}
	return out
}
