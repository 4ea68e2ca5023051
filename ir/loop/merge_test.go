package loop_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// TestSpansThatCannotBeCountedAreRefused checks the limit of i32 positions.
func TestSpansThatCannotBeCountedAreRefused(t *testing.T) {
	k := &loop.Kernel{Name: "k", Arrays: []loop.Array{
		{Name: "a", DType: dtype.F32, Width: 1, Len: 1}, {Name: "b", DType: dtype.F32, Width: 1, Len: 1},
	}}
	most := int64(4) * loop.MaxElements
	if most > math.MaxInt {
		return // no int of this machine is as many bytes
	}
	span := loop.Span{Windows: []loop.Window{{Array: 0, First: loop.Int(0)}, {Array: 1, First: loop.Int(64)}}, Bytes: int(most)}
	if _, err := loop.MergeArrays(k, []loop.Span{span}); err != nil {
		t.Errorf("the largest span: %v", err)
	}
	span.Bytes += 4
	var e *loop.SpanError
	if _, err := loop.MergeArrays(k, []loop.Span{span}); !errors.As(err, &e) || e.Kernel != "k" || e.Bytes != span.Bytes {
		t.Errorf("a span of %d bytes: error %v", span.Bytes, err)
	}
}
