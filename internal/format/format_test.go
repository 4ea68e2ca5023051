package format

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

type (
	word   string
	count  int
	letter byte
	named  struct{ name string }
)

func (n *named) String() string { return "named " + n.name }

func TestFormatsAsFmtDoes(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		text string
		args []any
	}{
		{"", nil},
		{"100 %% of %s", []any{"it"}},
		{"%s %v %q", []any{word("a"), word("b"), word("c\n\"")}},
		{"%d %v %d %v", []any{count(-3), count(4), uint8(255), int64(math.MinInt64)}},
		{"%x %08x %03d %x", []any{255, uint32(0xbeef), 7, uint64(math.MaxUint64)}},
		{"%d", []any{letter(7)}},
		{"%g %v %v %g", []any{0.1, 1e21, float32(0.1), math.Inf(-1)}},
		{"%t %v", []any{true, false}},
		{"%v %d %v %s %q", []any{[]int{1, 2}, []int{}, []string{"a", "b"}, []word{"c"}, []word{"d", "e"}}},
		{"%v %d", []any{[3]uint32{1, 2, 3}, [2]int{}}},
		{"%s %q", []any{&named{"x"}, &named{"z"}}},
		{"%v %s %q", []any{cause, cause, cause}},
		{"%T %T %T", []any{count(1), &named{}, []word{}}},
		{"%v %T", []any{nil, nil}},
		{"%s", []any{nil}},
		{"%s and %d", []any{"one"}},
		{"ends in %", nil},
	} {
		if got, want := sprintf(c.text, c.args), fmt.Sprintf(c.text, c.args...); got != want {
			t.Errorf("%q: %q, fmt has %q", c.text, got, want)
		}
	}
}

func TestErrorsWrapAsFmtDoes(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		text string
		args []any
	}{
		{"%08x %s: %w", []any{1, "a", cause}},
		{"100 %%: %w", []any{cause}},
		{"%d: %v", []any{1, cause}},
	} {
		got, want := errorf(c.text, c.args), fmt.Errorf(c.text, c.args...)
		if got.Error() != want.Error() || errors.Unwrap(got) != errors.Unwrap(want) {
			t.Errorf("%q: %v around %v, fmt has %v around %v", c.text, got, errors.Unwrap(got), want, errors.Unwrap(want))
		}
	}
}
