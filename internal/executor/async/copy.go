package async

import (
	"runtime"
	"sync"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// store writes a tensor to memory in the device's form, where a bool is a word.
func store(to []byte, t native.Tensor) {
	if t.DType == dtype.Bool {
		loop.WidenBools(to, t.Data)
		return
	}
	Copy(to, t.Data)
}

// fetch is the inverse of store.
func fetch(t native.Tensor, from []byte) {
	if t.DType == dtype.Bool {
		copy(t.Data, loop.HostBytes(dtype.Bool, from))
		return
	}
	Copy(t.Data, from)
}

// piece is how much memory a goroutine copies: less is not worth a goroutine.
const piece = 1 << 20

// Copy is copy, of large memory by several cores: one is slower than the bus to a GPU.
func Copy(to, from []byte) {
	if len(from) < 2*piece {
		copy(to, from)
		return
	}
	parts := min(runtime.GOMAXPROCS(0), len(from)/piece, 8)
	var all sync.WaitGroup
	for i := range parts {
		lo, hi := len(from)*i/parts, len(from)*(i+1)/parts
		all.Go(func() { copy(to[lo:hi], from[lo:hi]) })
	}
	all.Wait()
}
