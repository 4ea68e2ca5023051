# Prints the values of TestSpectraEqualOthers.
#   pip install numpy==2.4.6 scipy==1.17.1 librosa==0.11.0 && python spectra.py
import numpy as np
import scipy.signal as ss
import librosa


def pattern(seed, dims):
    i = np.arange(int(np.prod(dims)))
    return (((i * 37 + 11 + seed * 5) % 23 - 11) / 8).reshape(dims)


def digest(a):
    a = np.asarray(a).reshape(-1)
    i = np.arange(a.size)
    return float(np.sum(a * (((i * 29 + 5) % 17 - 8) / 4)))


def z(*dims):
    return pattern(1, dims) + 1j * pattern(2, dims)


def both(y):
    return digest(y.real) + 3 * digest(y.imag)


x = pattern(1, (2, 60))
hann = ss.get_window("hann", 16)
frames = np.stack([np.pad(x, ((0, 0), (8, 8)), mode="reflect")[:, k * 5 : k * 5 + 16] for k in range(13)], 1)
spectrum = np.fft.rfft(frames * hann)
mel = librosa.filters.mel(sr=8000, n_fft=16, n_mels=3, fmin=100, fmax=3500, dtype=np.float64)
out = {
    "fft": both(np.fft.fft(z(3, 7))),
    "ifft, ortho": both(np.fft.ifft(z(12), norm="ortho")),
    "fft, forward": both(np.fft.fft(z(2, 128), norm="forward")),
    "fft of a prime": both(np.fft.fft(z(101))),
    "fft of twice a prime": both(np.fft.ifft(z(2 * 53))),
    "fft of 1000": both(np.fft.fft(z(1000))),
    "fft2": both(np.fft.fft2(z(2, 6, 5))),
    "fftn": both(np.fft.fftn(z(3, 4, 35))),
    "rfft": both(np.fft.rfft(pattern(1, (3, 90)))),
    "rfft, first axis": both(np.fft.rfft(pattern(1, (7, 4)), axis=0, norm="ortho")),
    "irfft, even": digest(np.fft.irfft(z(2, 6))),
    "irfft, odd": digest(np.fft.irfft(z(2, 6), n=11, norm="forward")),
    "fftshift": digest(np.fft.fftshift(pattern(1, (5, 4)))),
    "ifftshift": digest(np.fft.ifftshift(pattern(1, (5, 4)))),
    "hann": digest(ss.get_window("hann", 10)),
    "hamming, symmetric": digest(ss.get_window("hamming", 9, fftbins=False)),
    "blackman": digest(ss.get_window("blackman", 10)),
    "nuttall": digest(ss.get_window("nuttall", 10)),
    "blackmanharris": digest(ss.get_window("blackmanharris", 10)),
    "bartlett": digest(ss.get_window("bartlett", 10)),
    "kaiser": digest(ss.get_window(("kaiser", 8.6), 10)),
    "mel_filterbank": digest(librosa.filters.mel(sr=16000, n_fft=400, n_mels=20, dtype=np.float64)),
    "mel_filterbank, htk": digest(librosa.filters.mel(sr=8000, n_fft=64, n_mels=4, fmin=50, fmax=3000, htk=True, norm=None, dtype=np.float64)),
    "stft": both(spectrum),
    "log_mel": digest(np.log(np.maximum(np.abs(spectrum) ** 2 @ mel.T, 1e-3))),
    "welch": digest(ss.welch(x, fs=3.0, window=hann, nperseg=16, noverlap=11)[1]),
    "welch of odd frames": digest(ss.welch(x, window=ss.get_window("hamming", 15), nperseg=15, noverlap=7)[1]),
}
for k, v in out.items():
    print(f'\t"{k}": {v!r},')
