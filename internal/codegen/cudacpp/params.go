package cudacpp

import (
	"encoding/binary"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Scalars returns the bytes of a kernel's struct of scalars, each aligned to its
// size. There must be as many as k declares.
func Scalars(k *loop.Kernel, scalars []scalar.Value) []byte {
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
			add(uint64(scalars[i].I), loop.DeviceSize(t))
		}
	}
	return out
}
