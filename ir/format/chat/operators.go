package chat

import (
	"math"
	"strings"
	"unicode/utf8"
)

func relation(op string, a, b any) (bool, error) {
	switch op {
	case "==":
		return same(a, b), nil
	case "!=":
		return !same(a, b), nil
	case "in", "not in":
		in, err := contains(b, a)
		return in == (op == "in"), err
	}
	c, err := order(a, b)
	switch op {
	case "<":
		return c < 0, err
	case ">":
		return c > 0, err
	case "<=":
		return c <= 0, err
	}
	return c >= 0, err
}

func contains(of, v any) (bool, error) {
	if s, ok := of.(string); ok {
		part, ok := v.(string)
		if !ok {
			return false, failf(ErrValue, "%s cannot be in a string", typeName(v))
		}
		return strings.Contains(s, part), nil
	}
	items, err := iterate(of)
	for _, item := range items {
		if same(item, v) {
			return true, nil
		}
	}
	return false, err
}

func negative(sign string, v any) (any, error) {
	if n, ok := integer(v); ok {
		if sign == "-" {
			n = -n
		}
		return n, nil
	}
	x, ok := v.(float64)
	if !ok {
		return nil, failf(ErrValue, "%s has no sign", typeName(v))
	}
	if sign == "-" {
		x = -x
	}
	return x, nil
}

// binary evaluates an operator of arithmetic or texts.
func (r *run) binary(op string, a, b any) (any, error) {
	if err := r.pay(a, b); err != nil {
		return nil, err
	}
	if op == "~" {
		return r.join(text(a), text(b))
	}
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok && op != "/" {
			return integers(op, x, y)
		}
	}
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		return floats(op, x, y)
	}
	s, isText := a.(string)
	t, alsoText := b.(string)
	l, isList := a.(*list)
	m, alsoList := b.(*list)
	switch {
	case op == "+" && isText && alsoText:
		return r.join(s, t)
	case op == "+" && isList && alsoList:
		if err := r.spend(len(l.items) + len(m.items)); err != nil {
			return nil, err
		}
		return &list{items: append(append([]any{}, l.items...), m.items...)}, nil
	case op == "*" && isText && alsoNumber:
		return r.repeat(s, b)
	case op == "*" && isNumber && alsoText:
		return r.repeat(t, a)
	}
	return nil, failf(ErrValue, "%s is not defined for %s and %s", op, typeName(a), typeName(b))
}

func (r *run) join(a, b string) (any, error) {
	if err := r.spend((len(a) + len(b)) / 64); err != nil {
		return nil, err
	}
	if len(a)+len(b) > maxOutput {
		return nil, failf(ErrLimit, "a text has more than %d bytes", maxOutput)
	}
	return a + b, nil
}

func (r *run) repeat(s string, times any) (any, error) {
	n, ok := integer(times)
	if !ok {
		return nil, failf(ErrValue, "a text is repeated %s times", text(times))
	}
	if n <= 0 || s == "" {
		return "", nil
	}
	if n > maxOutput/int64(len(s)) {
		return nil, failf(ErrLimit, "a text has more than %d bytes", maxOutput)
	}
	if err := r.spend(int(n) * len(s) / 64); err != nil {
		return nil, err
	}
	return strings.Repeat(s, int(n)), nil
}

func integers(op string, x, y int64) (any, error) {
	if y == 0 && (op == "//" || op == "%") {
		return nil, failf(ErrValue, "division by zero")
	}
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "//":
		q := x / y
		if x%y != 0 && (x < 0) != (y < 0) {
			q--
		}
		return q, nil
	case "%":
		m := x % y
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return m, nil
	}
	p := math.Pow(float64(x), float64(y))
	if y < 0 || math.Abs(p) > 1<<53 {
		return p, nil
	}
	return int64(p), nil
}

func floats(op string, x, y float64) (any, error) {
	if y == 0 && (op == "/" || op == "//" || op == "%") {
		return nil, failf(ErrValue, "division by zero")
	}
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "/":
		return x / y, nil
	case "//":
		return math.Floor(x / y), nil
	case "%":
		return x - y*math.Floor(x/y), nil
	}
	return math.Pow(x, y), nil
}

func runes(s string) int64 { return int64(utf8.RuneCountInString(s)) }
