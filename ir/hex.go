package ir

// Two digits a byte. Package encoding/hex is not used because it brings package
// fmt into the WebAssembly module.

const hexDigits = "0123456789abcdef"

func encodeHex(data []byte) string {
	out := make([]byte, 0, 2*len(data))
	for _, b := range data {
		out = append(out, hexDigits[b>>4], hexDigits[b&15])
	}
	return string(out)
}

// decodeHex decodes hexadecimal digits of either case; ok is false for other text.
func decodeHex(text string) (data []byte, ok bool) {
	if len(text)%2 != 0 {
		return nil, false
	}
	for i := 0; i < len(text); i += 2 {
		high, low := hexDigit(text[i]), hexDigit(text[i+1])
		if high > 15 || low > 15 {
			return nil, false
		}
		data = append(data, high<<4|low)
	}
	return data, true
}

// hexDigit returns the value of a digit, 255 for another character.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
