package tokenizer

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
)

// decoder rewrites the texts of tokens, which are joined after the last decoder.
type decoder interface {
	decode(tokens []string) ([]string, error)
}

// Decode returns the text of tokens. Bytes that are not UTF-8 become U+FFFD. The error is of
// kind ir.ErrIndex for an id that has no token.
func (t *Tokenizer) Decode(ids []int32, o DecodeOptions) (string, error) {
	if t == nil {
		return "", ir.Attrf("the tokenizer is nil: it must be from Read, Open or FromGGUF")
	}
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if !t.has(id) {
			return "", noToken(id, t.Size())
		}
		if o.OmitSpecial && t.isMark(id) {
			continue
		}
		tokens = append(tokens, t.textOf(id))
	}
	return t.join(tokens)
}

// isMark reports whether a token is special, or has the text of one that is: a vocabulary may have a token twice.
func (t *Tokenizer) isMark(id int32) bool {
	if t.added.special[id] {
		return true
	}
	of, ok := t.ids[t.tokens[id]]
	return ok && t.added.special[of]
}

// textOf returns what a token is to the decoders: an added one found in normalized text is normalized.
func (t *Tokenizer) textOf(id int32) string {
	if text, ok := t.added.texts[id]; ok {
		return text
	}
	return t.tokens[id]
}

// join returns the text of tokens by the decoders; without any, tokens are joined by spaces.
func (t *Tokenizer) join(tokens []string) (string, error) {
	if t.decoders == nil {
		return strings.Join(tokens, " "), nil
	}
	for _, d := range t.decoders {
		var err error
		if tokens, err = d.decode(tokens); err != nil {
			return "", err
		}
	}
	return strings.Join(tokens, ""), nil
}

// Stream decodes tokens one by one. It is for one goroutine.
type Stream struct {
	t *Tokenizer
	o DecodeOptions
	// window are the last tokens: those of the text that was written last, on which the decoding of the
	// next may depend, and then those of the text that is incomplete.
	window  []string
	written int // number of tokens at the start of the window whose text was written
	sent    int // bytes written of the text of the tokens after those
}

// maxHeld is the maximum number of tokens that are held back: a character has up to four bytes.
const maxHeld = utf8.UTFMax - 1

// Stream returns a decoder of one token after the other.
func (t *Tokenizer) Stream(o DecodeOptions) *Stream { return &Stream{t: t, o: o} }

// Push takes the next token and returns the text that it completes, which may be empty. Characters are
// never split. The texts and that of [Stream.Flush] make up the text of [Tokenizer.Decode]; only for bytes
// that are not UTF-8 the number of U+FFFD may differ. The error is of kind ir.ErrIndex for an
// id that has no token, which changes nothing.
func (s *Stream) Push(id int32) (string, error) {
	if s == nil {
		return "", ir.Attrf("the stream is nil: it must be from Tokenizer.Stream")
	}
	if !s.t.has(id) {
		return "", noToken(id, s.t.Size())
	}
	if s.o.OmitSpecial && s.t.isMark(id) {
		return "", nil
	}
	s.window = append(s.window, s.t.textOf(id))
	return s.write(len(s.window)-s.written <= maxHeld)
}

// Flush returns the text of the tokens that are held back, with U+FFFD for an incomplete character.
func (s *Stream) Flush() (string, error) {
	if s == nil {
		return "", ir.Attrf("the stream is nil: it must be from Tokenizer.Stream")
	}
	return s.write(false)
}

// write returns the text that was not written yet. With hold, it waits for the rest of a character.
func (s *Stream) write(hold bool) (string, error) {
	before, err := s.t.join(slices.Clone(s.window[:s.written]))
	if err != nil {
		return "", err
	}
	now, err := s.t.join(slices.Clone(s.window))
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(now, before) { // the written text ended in invalid UTF-8, now U+FFFD
		rest, err := s.t.join(slices.Clone(s.window[s.written:]))
		if err != nil {
			return "", err
		}
		now = before + rest
	}
	whole := now
	if hold {
		whole = strings.TrimRight(now, "\uFFFD")
	}
	text := whole[min(len(before)+s.sent, len(whole)):]
	if hold && (len(whole) < len(now) || len(now) <= len(before)) { // the next tokens may need those of the window
		s.sent += len(text)
		return text, nil
	}
	s.window = append(s.window[:0], s.window[s.written:]...)
	s.written, s.sent = len(s.window), 0
	return text, nil
}

// perToken is a decoder that rewrites tokens one by one, by their positions.
type perToken func(token string, i, n int) string

func (f perToken) decode(tokens []string) ([]string, error) {
	for i, token := range tokens {
		tokens[i] = f(token, i, len(tokens))
	}
	return tokens, nil
}

// wordPieceDecoder removes the prefix of tokens within words and puts spaces between words.
func wordPieceDecoder(prefix string, cleanup bool) decoder {
	return perToken(func(token string, i, _ int) string {
		if i > 0 {
			if rest, ok := strings.CutPrefix(token, prefix); ok {
				token = rest
			} else {
				token = " " + token
			}
		}
		if cleanup {
			token = cleanSpaces(token)
		}
		return token
	})
}

// spaces before punctuation and English contractions, which are removed in this order.
var spaceCleanup = []*strings.Replacer{
	strings.NewReplacer(" .", "."), strings.NewReplacer(" ?", "?"), strings.NewReplacer(" !", "!"), strings.NewReplacer(" ,", ","),
	strings.NewReplacer(" ' ", "'"), strings.NewReplacer(" n't", "n't"), strings.NewReplacer(" 'm", "'m"),
	strings.NewReplacer(" do not", " don't"), strings.NewReplacer(" 's", "'s"), strings.NewReplacer(" 've", "'ve"),
	strings.NewReplacer(" 're", "'re"),
}

func cleanSpaces(text string) string {
	for _, r := range spaceCleanup {
		text = r.Replace(text)
	}
	return text
}

// metaspaceDecoder writes marks as spaces, and drops one at the beginning.
func metaspaceDecoder(mark, scheme string) decoder {
	return perToken(func(token string, i, _ int) string {
		if i == 0 && scheme != prependNever {
			token = strings.TrimPrefix(token, mark)
		}
		return strings.ReplaceAll(token, mark, " ")
	})
}

// suffixDecoder writes the suffix of words as a space, and drops that of the last word.
func suffixDecoder(suffix string) decoder {
	return perToken(func(token string, i, n int) string {
		if i == n-1 {
			return strings.ReplaceAll(token, suffix, "")
		}
		return strings.ReplaceAll(token, suffix, " ")
	})
}

// stripDecoder removes up to left and right copies of a character at the ends of each text.
func stripDecoder(content string, left, right int) decoder {
	return perToken(func(token string, _, _ int) string {
		for range left {
			rest, ok := strings.CutPrefix(token, content)
			if !ok || content == "" {
				break
			}
			token = rest
		}
		for range right {
			rest, ok := strings.CutSuffix(token, content)
			if !ok || content == "" {
				break
			}
			token = rest
		}
		return token
	})
}

// replaceDecoder rewrites each text.
type replaceDecoder struct{ replace }

func (d replaceDecoder) decode(tokens []string) ([]string, error) {
	for i, token := range tokens {
		var err error
		if tokens[i], err = d.normalize(token); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

// wholeDecoder joins all texts.
type wholeDecoder func(tokens []string) []string

func (f wholeDecoder) decode(tokens []string) ([]string, error) { return f(tokens), nil }

func fuse(tokens []string) []string { return []string{strings.Join(tokens, "")} }

// joinBytes decodes the alphabet of bytes.
func joinBytes(tokens []string) []string {
	var out []byte
	for _, token := range tokens {
		out = appendFromByteLevel(out, token)
	}
	return []string{valid(string(out))}
}

// joinByteTokens decodes tokens such as <0x0A>: a run of them as UTF-8, or as one U+FFFD for each
// byte if it is invalid.
func joinByteTokens(tokens []string) []string {
	var out []string
	var run []byte
	end := func() {
		if utf8.Valid(run) {
			out = append(out, string(run))
		} else {
			out = append(out, strings.Repeat("\uFFFD", len(run)))
		}
		run = run[:0]
	}
	for _, token := range tokens {
		if b, ok := byteOf(token); ok {
			run = append(run, b)
			continue
		}
		if len(run) > 0 {
			end()
		}
		out = append(out, token)
	}
	if len(run) > 0 {
		end()
	}
	return out
}

// byteOf returns the byte of a token as <0x0A>.
func byteOf(token string) (byte, bool) {
	if len(token) != len("<0x00>") || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

// ctc drops repeated tokens and the padding of connectionist temporal classification.
func ctc(pad, delimiter string, cleanup bool) decoder {
	return wholeDecoder(func(tokens []string) []string {
		var out []string
		for i, token := range tokens {
			if i > 0 && token == tokens[i-1] {
				continue
			}
			token = strings.ReplaceAll(token, pad, "")
			if cleanup {
				token = strings.ReplaceAll(cleanSpaces(token), delimiter, " ")
			}
			if token != "" {
				out = append(out, token)
			}
		}
		return out
	})
}
