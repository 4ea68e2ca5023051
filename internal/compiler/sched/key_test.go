package sched_test

import (
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestKeysDistinguishTargets finds a number of a target that the keys of groups do not hash: a
// schedule measured on one target would be used on another.
func TestKeysDistinguishTargets(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) { b.Output("y", ops.Exp(b, b.Input("x", ir.F32, ir.N(8)))) })
	group := groups(t, g).Items[0].(*fusion.Group)
	base := loop.Caps{}
	plain := sched.KeyOf(group, base)
	without := map[string]string{
		"Drafts":   "a schedule has its draft",
		"Refused":  "a schedule that leaves a product to a library that refuses it does not fit, and is not taken",
		"Device":   "what was measured needs no estimates",
		"ShareOps": "groups have no choice where a workgroup has one thread, but for sorts, which are not shared",
	}
	var visit func(name string, field reflect.Value)
	visit = func(name string, field reflect.Value) {
		if without[name] != "" {
			return
		}
		old := reflect.New(field.Type()).Elem()
		old.Set(field)
		switch field.Kind() {
		case reflect.Struct:
			for i := range field.NumField() {
				visit(field.Type().Field(i).Name, field.Field(i))
			}
			return
		case reflect.Array:
			for i := range field.Len() {
				visit(name, field.Index(i))
			}
			return
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Uint8:
			field.SetUint(1)
		default:
			field.SetInt(1)
		}
		if sched.KeyOf(group, base) == plain {
			t.Errorf("%s is not among the numbers of a key", name)
		}
		field.Set(old)
	}
	visit("Caps", reflect.ValueOf(&base).Elem())
}
