package simd

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// cache holds the kernels of each level, which are generated when they are first used.
type cache[K any] struct {
	generate func(Level) (*K, error)
	plain    func() *K // in Go
	levels   [NEON + 1]atomic.Pointer[K]
	mutex    sync.Mutex
}

// get returns the kernels of the level in use.
func (c *cache[K]) get() *K { return c.at(Has) }

// at returns the kernels of a level.
func (c *cache[K]) at(level Level) *K {
	if k := c.levels[level].Load(); k != nil {
		return k
	}
	return c.fill(level)
}

// fill generates the kernels of a level. They are the plain ones where the system does not permit
// executing generated code.
func (c *cache[K]) fill(level Level) *K {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at := &c.levels[level]
	if k := at.Load(); k != nil {
		return k
	}
	if level != Go && asm.Available() {
		if k, err := c.generate(level); err == nil {
			at.Store(k)
			return k
		}
	}
	at.Store(c.plain())
	return at.Load()
}

// Arguments of machine code are set field by field: Go copies a literal in vectors, and a load of
// one field then waits until the copy is in memory.

// library collects the machine code of kernels, and the variables that get their addresses.
type library struct {
	functions [][]byte
	entries   []*unsafe.Pointer
}

// add adds a function; nil means that there is no code for it.
func (l *library) add(entry *unsafe.Pointer, function []byte) {
	if function != nil {
		l.functions, l.entries = append(l.functions, function), append(l.entries, entry)
	}
}

// load makes the functions executable. It returns the code, which must be kept alive while it is
// called; nil if there is none.
func (l *library) load() (*asm.Code, error) {
	if len(l.functions) == 0 {
		return nil, nil
	}
	code, err := asm.Load(l.functions...)
	if err != nil {
		return nil, err
	}
	for i, entry := range l.entries {
		*entry = code.Entry(i)
	}
	return code, nil
}

// kernels are the kernels of a level for one type.
type kernels[T Float] struct {
	code       *asm.Code
	lanes      int            // columns of a narrow tile; a wide one has twice as many
	maskedTail bool           // kernels mask the stores of their last vectors
	wide       []kernel[T]    // those with more rows first; the last has one row
	narrow     []kernel[T]    // with as many rows as those of wide
	row        kernel[T]      // one row of rowColumns columns
	dots       unsafe.Pointer // code with arguments dotsArguments; nil for plainDots
	rowColumns int
	dotLanes   int
	substitute [len(panelVectors)]unsafe.Pointer // code with arguments substituteArguments; nil for plainSubstitute
}

var (
	kernels32    = cache[kernels[float32]]{generate: newKernels[float32], plain: plain[float32]}
	kernels64    = cache[kernels[float64]]{generate: newKernels[float64], plain: plain[float64]}
	kernelsPairs = cache[kernels[float32]]{generate: newPairKernels, plain: plain[float32]}
)

// kind is a type of elements of products.
type kind uint8

const (
	singles kind = iota
	doubles
	pairs // two numbers of bf16, whose products are added to a number of f32
)

// MultipliesPairs reports whether there are kernels for pairs of bf16, see [Space.Pairs].
func MultipliesPairs() bool { return Has == AVX512 && hasPairs && kernelsPairs.get().code != nil }

// kernelsFor returns the kernels for a product of n columns. Products that fill half a vector of AVX-512 use the
// kernels of AVX2: processors execute twice as many of their instructions at once.
func kernelsFor[T Float](s *Space[T], n int) *kernels[T] {
	k := s.kernels()
	if s.Pairs || Has != AVX512 || 2*n > k.lanes {
		return k
	}
	if unsafe.Sizeof(T(0)) == 8 {
		return any(kernels64.at(AVX2)).(*kernels[T])
	}
	return any(kernels32.at(AVX2)).(*kernels[T])
}

// kernels returns the kernels for the elements that a space is for.
func (s *Space[T]) kernels() *kernels[T] {
	if s.Pairs {
		return any(kernelsPairs.get()).(*kernels[T])
	}
	return kernelsOf[T]()
}

func newPairKernels(level Level) (*kernels[float32], error) {
	return kernelsFrom[float32](level, pairs)
}

// kernelsOf returns the kernels of the level in use.
func kernelsOf[T Float]() *kernels[T] {
	var t T
	if _, double := any(t).(float64); double {
		return any(kernels64.get()).(*kernels[T])
	}
	return any(kernels32.get()).(*kernels[T])
}

// tileRows are the rows of the tiles of a level: as many as there are registers for.
var tileRows = [...][]int{Go: nil, AVX2: {6, 4, 2, 1}, AVX512: {12, 8, 4, 2, 1}, NEON: {12, 8, 4, 2, 1}}

// newKernels generates the kernels of a level.
func newKernels[T Float](level Level) (*kernels[T], error) {
	if unsafe.Sizeof(T(0)) == 8 {
		return kernelsFrom[T](level, doubles)
	}
	return kernelsFrom[T](level, singles)
}

// kernelsFrom generates the kernels of a level for elements.
func kernelsFrom[T Float](level Level, of kind) (k *kernels[T], err error) {
	const wide, row = 2, 8 // vectors of a row
	size := int(unsafe.Sizeof(T(0)))
	lanes := level.vectorBytes() / size
	k = &kernels[T]{lanes: lanes, maskedTail: masksTails, rowColumns: row * lanes, dotLanes: 2 * lanes}
	k.wide, k.narrow = make([]kernel[T], len(tileRows[level])), make([]kernel[T], len(tileRows[level]))
	l := &library{}
	for i, rows := range tileRows[level] {
		k.wide[i].rows, k.narrow[i].rows = rows, rows
		for r := strided; r <= gathered; r++ {
			l.add(&k.wide[i].code[r], tileCode(level, of, rows, wide, r))
			l.add(&k.narrow[i].code[r], tileCode(level, of, rows, 1, r))
		}
	}
	k.row.rows = 1
	l.add(&k.row.code[strided], tileCode(level, of, 1, row, strided))
	l.add(&k.dots, dotsCode(level, of == doubles))
	for i, vectors := range panelVectors {
		l.add(&k.substitute[i], substituteCode(level, of == doubles, vectors))
	}
	k.code, err = l.load()
	return k, err
}

// vectorBytes returns the size of a vector.
func (l Level) vectorBytes() int { return [...]int{Go: 0, AVX2: 32, AVX512: 64, NEON: 16}[l] }
