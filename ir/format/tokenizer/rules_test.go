package tokenizer_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir/format/tokenizer"
)

// TestRules compares small tokenizers with tokenizers 0.23.3, which made testdata/rules.json.
func TestRules(t *testing.T) {
	data, err := os.ReadFile("testdata/rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		What      string
		Tokenizer json.RawMessage
		Rows      []struct {
			Text, Decoded, Plain string
			IDs                  []int32
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.What, func(t *testing.T) {
			tok, err := tokenizer.Read(bytes.NewReader(c.Tokenizer))
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range c.Rows {
				ids, err := tok.Encode(row.Text, tokenizer.EncodeOptions{})
				if err != nil || !slices.Equal(ids, row.IDs) {
					t.Errorf("%q: ids %v, want %v: %v", row.Text, ids, row.IDs, err)
				}
				for omit, want := range map[bool]string{false: row.Decoded, true: row.Plain} {
					got, err := tok.Decode(row.IDs, tokenizer.DecodeOptions{OmitSpecial: omit})
					if err != nil || got != want {
						t.Errorf("text of %v, special ones left out %v: %q, want %q: %v", row.IDs, omit, got, want, err)
					}
				}
			}
		})
	}
}
