package plan

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/rlx-go/rlx/internal/format"
)

// reader reads fields from buf[off:end]. After the first error it returns
// zeros.
type reader struct {
	buf      []byte
	off, end int
	newer    bool // the file's minor version is later than Minor
	calls    bool // the file has routines, which steps may call
	section  string
	err      error
}

func (r *reader) failAt(offset int, kind error, rule int, text string, args ...any) {
	if r.err == nil {
		r.err = &FormatError{Kind: kind, Rule: rule, Offset: offset, Section: r.section, Msg: format.Sprintf(text, args...)}
	}
}

func (r *reader) fail(rule int, text string, args ...any) {
	r.failAt(r.off, ErrDamaged, rule, text, args...)
}

// ensure fails unless n bytes, padded to 4, remain.
func (r *reader) ensure(n int) {
	if pad := -n & 3; n > r.end-r.off-pad {
		r.fail(3, "%d bytes expected, %d left", n+pad, r.end-r.off)
	}
}

func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > r.end-r.off) {
		r.fail(3, "%d bytes expected, %d left", n, r.end-r.off)
	}
	if r.err != nil {
		return nil
	}
	r.off += n
	return r.buf[r.off-n : r.off : r.off]
}

func (r *reader) skip(n int) { r.take(n) }

func (r *reader) u32() int {
	b := r.take(4)
	if b == nil {
		return 0
	}
	v := binary.LittleEndian.Uint32(b)
	if uint64(v) > math.MaxInt {
		r.fail(4, "a number is out of range")
		return 0
	}
	return int(v)
}

// i64 reads a number that JavaScript represents exactly.
func (r *reader) i64() int {
	b := r.take(8)
	if b == nil {
		return 0
	}
	v := int64(binary.LittleEndian.Uint64(b))
	if v < -maxExact || v > maxExact {
		r.fail(4, "a number is out of range")
		return 0
	}
	return int(v)
}

func (r *reader) u64() int {
	v := r.i64()
	if v < 0 {
		r.fail(4, "a number is out of range")
		return 0
	}
	return v
}

// enum reads a u32 below n; what names it in the error.
func (r *reader) enum(n int, what string) int {
	v := r.u32()
	if v >= n {
		r.fail(6, "unknown %s %d", what, v)
		return 0
	}
	return v
}

func (r *reader) str() string {
	n := r.u32()
	r.ensure(n)
	b := r.take(n)
	r.skip(-n & 3)
	if !utf8.Valid(b) {
		r.fail(5, "a string is not UTF-8")
	}
	if r.err != nil {
		return ""
	}
	return string(b)
}

// count reads the length of a list whose items take at least size bytes each.
func (r *reader) count(size int) int {
	n := r.u32()
	if n > (r.end-r.off)/size {
		r.fail(3, "a list of %d items in %d bytes", n, r.end-r.off)
		return 0
	}
	return n
}

// finish ends a record or a section. Remaining bytes are fields of a later version, or
// an error.
func (r *reader) finish() {
	if r.off < r.end && !r.newer {
		r.fail(3, "%d bytes too many", r.end-r.off)
	}
	if r.err == nil {
		r.off = r.end
	}
}

// record reads u32 length and the fields that body reads.
func (r *reader) record(body func()) {
	n := r.u32()
	r.ensure(n)
	if r.err != nil {
		return
	}
	outer := r.end
	r.end = r.off + n
	body()
	r.finish()
	r.end = outer
	r.skip(-n & 3)
}

// items reads a list of records.
func items[T any](r *reader, item func(*T)) []T {
	n := r.count(4)
	if n == 0 {
		return nil
	}
	out := make([]T, 0, min(n, 1024)) // n is not trusted
	for range n {
		var t T
		r.record(func() { item(&t) })
		if r.err != nil {
			return nil
		}
		out = append(out, t)
	}
	return out
}

// numbers reads a list of numbers of size bytes each.
func numbers(r *reader, size int, read func() int) []int {
	n := r.count(size)
	if n == 0 {
		return nil
	}
	out := make([]int, n)
	for i := range out {
		out[i] = read()
	}
	return out
}

func (r *reader) triple() (v [3]int) {
	for i := range v {
		v[i] = r.u32()
	}
	return v
}

func (r *reader) flag() bool { return r.enum(2, "truth value") == 1 }
