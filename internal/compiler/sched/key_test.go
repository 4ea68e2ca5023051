package sched

import (
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/ir/loop"
)

// TestKeysDistinguishTargets finds a number of a target that the keys of groups do not hash: a
// schedule measured on one target would be used on another.
func TestKeysDistinguishTargets(t *testing.T) {
	base := loop.Caps{}
	plain := capsWords(base)
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
		if words := capsWords(base); reflect.DeepEqual(words, plain) {
			t.Errorf("%s is not among the words of a target", name)
		}
		field.Set(old)
	}
	visit("Caps", reflect.ValueOf(&base).Elem())
}
