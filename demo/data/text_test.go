package data

import (
	"slices"
	"strings"
	"testing"
)

func TestShakespeareIsComplete(t *testing.T) {
	text, err := Shakespeare()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 1115394 || !strings.HasPrefix(string(text), "First Citizen:\nBefore we proceed any further") {
		t.Fatalf("%d bytes: %.40q", len(text), text)
	}
	numbered := NewText(text)
	// 65 characters, 1,003,854 to train on: the numbers of nanoGPT's preparation.
	if len(numbered.Characters) != 65 || len(numbered.Train) != 1003854 || len(numbered.Held) != 111540 {
		t.Errorf("%d characters, %d and %d", len(numbered.Characters), len(numbered.Train), len(numbered.Held))
	}
	if s := numbered.Decode(numbered.Train[:14]); s != "First Citizen:" {
		t.Errorf("decoded: %q", s)
	}
}

func TestTextTargetsAreShiftedByOneCharacter(t *testing.T) {
	x := NewText([]byte(strings.Repeat("the quick brown fox. ", 20)))
	const context = 8
	tokens, next := make([]int32, 4*context), make([]int32, 4*context)
	x.Batch(7, 3, context, tokens, next)
	for i := range tokens {
		if i%context != context-1 && next[i] != tokens[i+1] {
			t.Fatalf("next[%d] is %d, and then comes %d", i, next[i], tokens[i+1])
		}
	}
	again, other := make([]int32, 4*context), make([]int32, 4*context)
	x.Batch(7, 3, context, again, make([]int32, 4*context))
	x.Batch(7, 4, context, other, make([]int32, 4*context))
	if !slices.Equal(tokens, again) || slices.Equal(tokens, other) {
		t.Error("a batch depends on more than seed and step, or on less")
	}
	n := x.Windows(context) // of 42 characters: 5
	x.Window(n-1, context, tokens, next)
	if n != 5 || !slices.Equal(tokens[:context], x.Held[32:40]) || !slices.Equal(tokens[context:2*context], x.Held[:context]) || next[7] != x.Held[40] {
		t.Errorf("%d windows: %v, %v", n, tokens, x.Held)
	}
}

func TestUnknownCharactersAreNotEncoded(t *testing.T) {
	x := NewText([]byte("abc"))
	if n, ok := x.Encode("cab"); !ok || !slices.Equal(n, []int32{2, 0, 1}) {
		t.Errorf("%v, %v", n, ok)
	}
	if _, ok := x.Encode("cat"); ok {
		t.Error("a t was encoded")
	}
}
