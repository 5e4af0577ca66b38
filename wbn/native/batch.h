// The mathematics of wbn/core.py for tensors in memory: a batch is normalized, or differentiated.
//
// A batch is a block of numbers [samples][channels][positions]. Where there are few positions or
// none, a sample is a row of channels x positions columns, and loops run over columns ("rows");
// otherwise a channel is taken by itself, all of its values three times, and stays in the cache
// ("channels"). Both work in parts, on as many threads as torch has. What a part adds up does not
// depend on the number of threads, and neither do the results.
//
// Sums are taken in the precision of A, single for bfloat16, over no more than a few hundred
// values each, and then in double. Masked values, those without weight, count as zeros where they
// are not finite or too large to be squared, and have no gradient there.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#define INLINE static inline __attribute__((always_inline))
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define VECTORIZED __attribute__((target_clones("avx2", "default"), flatten))
#else
#define VECTORIZED
#endif

using Size = std::ptrdiff_t;

struct BFloat16 {
    uint16_t bits;
};

INLINE double precise(double value) { return value; }
INLINE float precise(float value) { return value; }
INLINE float precise(BFloat16 value) {
    const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

INLINE void store(double& to, double value) { to = value; }
INLINE void store(float& to, float value) { to = value; }
INLINE void store(BFloat16& to, float value) {  // rounded to even, as in torch
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    to.bits = static_cast<uint16_t>(value == value ? rounded : 0x7fc0);
}

template <typename T>
using Precise = decltype(precise(T()));

template <typename T>
struct Batch {
    using A = Precise<T>;
    const T *x, *grad;  // grad in the backward pass only
    T *out;             // y, or the gradient of x
    const A *share, *weight, *bias;  // w / Z; weight and bias may be null
    A *mean, *rest, *var;  // the mean is mean + rest: of large means, A has too few digits
    A *stored;             // the variance for inference; null in the backward pass
    A *grad_weight, *grad_bias;
    Size samples, channels, positions;
    Size repeat;  // rows that have one share
    bool each;    // a share for each position
    int threads;
    double eps;
    double corrected, to_store;  // from the plain variance to var, and from there to stored
    A *partial, *totals;                 // of rows: sums for each part and column, and of shares,
    A *center, *scale, *slope, *offset;  // and what each column is normalized with

    bool in_rows() const { return positions <= 16 && !each; }
    Size columns() const { return channels * positions; }
    Size rows_of_part() const { return std::min<Size>(256, std::max<Size>(32, 65536 / columns())); }
    Size parts() const { return (samples + rows_of_part() - 1) / rows_of_part(); }
    A *sums(Size part) const { return partial + 3 * columns() * part; }
    A gamma(Size channel) const { return weight ? weight[channel] : A(1); }
    A beta(Size channel) const { return bias ? bias[channel] : A(0); }
    A inverse_std(Size channel) const { return 1 / std::sqrt(var[channel] + A(eps)); }
    void set_moments(Size channel, double m, double v) const {
        const double of_batch = std::max(v, 0.0) * corrected;  // rounding may leave less than 0
        mean[channel] = static_cast<A>(m);
        rest[channel] = static_cast<A>(m - mean[channel]);
        var[channel] = static_cast<A>(of_batch);
        stored[channel] = static_cast<A>(of_batch * to_store);
    }
    void set_gradients(Size channel, double sum, double products) const {  // of g and g (x - mean)
        const double of_distances = products - rest[channel] * sum;
        grad_weight[channel] = static_cast<A>(of_distances * inverse_std(channel));
        grad_bias[channel] = static_cast<A>(sum);
    }
    A slope_of(Size channel) const {  // of the gradient that goes through the moments
        const A inverse = inverse_std(channel);
        return -A(corrected) * gamma(channel) * inverse * inverse * grad_weight[channel];
    }
    A offset_of(Size channel) const {
        const A scale = gamma(channel) * inverse_std(channel);
        return -scale * grad_bias[channel] - rest[channel] * slope_of(channel);
    }
};

template <typename A>
INLINE bool squarable(A value) {  // below the fourth root of the largest number
    return std::abs(value) < (sizeof(A) == 4 ? A(0x1p32) : A(0x1p256));
}

template <typename A>
INLINE A counted(A value, bool masked) {
    return masked && !squarable(value) ? A(0) : value;
}

// ---- Rows

template <typename T, typename Visit>
INLINE void each_row(const Batch<T>& batch, Size part, Visit visit) {
    const Size from = part * batch.rows_of_part();
    const Size to = std::min(from + batch.rows_of_part(), batch.samples);
    for (Size row = from; row < to; row++) {
        const auto share = batch.share[row / batch.repeat];
        if (share == 0) visit(row * batch.columns(), share, std::true_type());
        else visit(row * batch.columns(), share, std::false_type());
    }
}

// Weighted moments of the rows of a part, each of which is read twice and stays in the cache:
// a = sum(p x) / sum(p) with a rounding that doesn't matter, sum(p (x - a)) and sum(p (x - a)^2).
template <typename T>
INLINE void moments_of_rows(const Batch<T>& batch, Size part) {
    using A = Precise<T>;
    const Size columns = batch.columns();
    A *center = batch.sums(part), *shift = center + columns, *squares = shift + columns;
    std::fill_n(center, 3 * columns, A(0));
    A total = 0;
    each_row(batch, part, [&](Size at, A share, auto masked) {
        const T *x = batch.x + at;
        total += share;
        for (Size j = 0; j < columns; j++) center[j] += share * counted(precise(x[j]), masked);
    });
    for (Size j = 0; j < columns && total > 0; j++) center[j] /= total;
    each_row(batch, part, [&](Size at, A share, auto masked) {
        const T *x = batch.x + at;
        for (Size j = 0; j < columns; j++) {
            const A distance = counted(precise(x[j]), masked) - center[j];
            const A weighted = share * distance;
            shift[j] += weighted;
            squares[j] += weighted * distance;
        }
    });
    batch.totals[part] = total;
}

// (x - m) scale + b
template <typename T>
INLINE void normalize_rows(const Batch<T>& batch, Size part) {
    using A = Precise<T>;
    const Size columns = batch.columns();
    const A *center = batch.center, *scale = batch.scale, *offset = batch.offset;
    each_row(batch, part, [&](Size at, A, auto masked) {
        const T *x = batch.x + at;
        T *y = batch.out + at;
        for (Size j = 0; j < columns; j++)
            store(y[j], (counted(precise(x[j]), masked) - center[j]) * scale[j] + offset[j]);
    });
}

// sum(g) and sum(g (x - m))
template <typename T>
INLINE void sum_gradient_rows(const Batch<T>& batch, Size part) {
    using A = Precise<T>;
    const Size columns = batch.columns();
    A *sum = batch.sums(part), *products = sum + columns;
    const A *center = batch.center;
    std::fill_n(sum, 2 * columns, A(0));
    each_row(batch, part, [&](Size at, A, auto masked) {
        const T *x = batch.x + at, *grad = batch.grad + at;
        for (Size j = 0; j < columns; j++) {
            const A g = precise(grad[j]);
            sum[j] += g;
            products[j] += g * (counted(precise(x[j]), masked) - center[j]);
        }
    });
}

// scale g + p (slope (x - m) + offset)
template <typename T>
INLINE void gradient_rows(const Batch<T>& batch, Size part) {
    using A = Precise<T>;
    const Size columns = batch.columns();
    const A *center = batch.center, *scale = batch.scale;
    const A *slope = batch.slope, *offset = batch.offset;
    each_row(batch, part, [&](Size at, A share, auto masked) {
        const T *x = batch.x + at, *grad = batch.grad + at;
        T *out = batch.out + at;
        for (Size j = 0; j < columns; j++) {
            const A value = precise(x[j]), through = (value - center[j]) * slope[j] + offset[j];
            const A gradient = scale[j] * precise(grad[j]) + share * through;
            store(out[j], masked && !squarable(value) ? A(0) : gradient);
        }
    });
}

// ---- Channels

// Sums are taken in lanes, which the compiler makes vectors of.
template <typename A, typename Term>
INLINE double sum_positions(Size count, Term term) {
    constexpr Size lanes = 16, most = 256 * lanes;
    double total = 0;
    Size at = 0;
    while (at + lanes <= count) {
        A sums[lanes] = {};
        const Size end = at + std::min(most, (count - at) / lanes * lanes);
        for (; at < end; at += lanes)
            for (Size k = 0; k < lanes; k++) sums[k] += term(at + k);
        for (Size half = lanes / 2; half > 0; half /= 2)
            for (Size k = 0; k < half; k++) sums[k] += sums[k + half];
        total += sums[0];
    }
    for (; at < count; at++) total += term(at);
    return total;
}

template <typename T, typename Visit>
INLINE void each_sample(const Batch<T>& batch, Size channel, Visit visit) {
    using A = Precise<T>;
    const auto never = [](Size) { return std::false_type(); };
    for (Size n = 0; n < batch.samples; n++) {
        const Size at = (n * batch.channels + channel) * batch.positions;
        if (batch.each) {
            const A *shares = batch.share + n * batch.positions;
            visit(at, [=](Size l) { return shares[l]; }, [=](Size l) { return shares[l] == 0; });
            continue;
        }
        const A share = batch.share[n];
        const auto same = [=](Size) { return share; };
        if (share == 0) visit(at, same, [](Size) { return std::true_type(); });
        else visit(at, same, never);
    }
}

template <typename T>
INLINE void normalize_channel(const Batch<T>& batch, Size channel) {
    using A = Precise<T>;
    const Size count = batch.positions;
    double sum = 0, shift = 0, squares = 0;
    each_sample(batch, channel, [&](Size at, auto share, auto masked) {
        const T *x = batch.x + at;
        sum += sum_positions<A>(
            count, [&](Size l) { return share(l) * counted(precise(x[l]), masked(l)); });
    });
    const A center = static_cast<A>(sum);
    const auto distance = [&](T value, bool masked) {
        return counted(precise(value), masked) - center;
    };
    each_sample(batch, channel, [&](Size at, auto share, auto masked) {
        const T *x = batch.x + at;
        shift += sum_positions<A>(
            count, [&](Size l) { return share(l) * distance(x[l], masked(l)); });
        squares += sum_positions<A>(count, [&](Size l) {
            const A d = distance(x[l], masked(l));
            return share(l) * d * d;
        });
    });
    batch.set_moments(channel, center + shift, squares - shift * shift);
    const A mean = batch.mean[channel], scale = batch.gamma(channel) * batch.inverse_std(channel);
    const A offset = batch.beta(channel) - batch.rest[channel] * scale;
    each_sample(batch, channel, [&](Size at, auto, auto masked) {
        const T *x = batch.x + at;
        T *y = batch.out + at;
        for (Size l = 0; l < count; l++)
            store(y[l], (counted(precise(x[l]), masked(l)) - mean) * scale + offset);
    });
}

template <typename T>
INLINE void differentiate_channel(const Batch<T>& batch, Size channel) {
    using A = Precise<T>;
    const Size count = batch.positions;
    const A mean = batch.mean[channel], inverse_std = batch.inverse_std(channel);
    double sum = 0, products = 0;
    each_sample(batch, channel, [&](Size at, auto, auto masked) {
        const T *x = batch.x + at, *grad = batch.grad + at;
        sum += sum_positions<A>(count, [&](Size l) { return precise(grad[l]); });
        products += sum_positions<A>(count, [&](Size l) {
            return precise(grad[l]) * (counted(precise(x[l]), masked(l)) - mean);
        });
    });
    batch.set_gradients(channel, sum, products);
    const A scale = batch.gamma(channel) * inverse_std;
    const A slope = batch.slope_of(channel), offset = batch.offset_of(channel);
    each_sample(batch, channel, [&](Size at, auto share, auto masked) {
        const T *x = batch.x + at, *grad = batch.grad + at;
        T *out = batch.out + at;
        for (Size l = 0; l < count; l++) {
            const A value = precise(x[l]), through = (value - mean) * slope + offset;
            const A gradient = scale * precise(grad[l]) + share(l) * through;
            store(out[l], masked(l) && !squarable(value) ? A(0) : gradient);
        }
    });
}

// ---- Parts, in parallel

// Functions that the compiler makes twice, for processors with AVX2 and for others: no templates.
#define PART(name, work)                                                                     \
    VECTORIZED void name(const Batch<float>& batch, Size part) { work(batch, part); }        \
    VECTORIZED void name(const Batch<double>& batch, Size part) { work(batch, part); }       \
    VECTORIZED void name(const Batch<BFloat16>& batch, Size part) { work(batch, part); }
PART(part_of_moments, moments_of_rows)
PART(part_of_output, normalize_rows)
PART(part_of_gradient_sums, sum_gradient_rows)
PART(part_of_gradient, gradient_rows)
PART(channel_of_output, normalize_channel)
PART(channel_of_gradient, differentiate_channel)

template <typename T>
static void run(void (*work)(const Batch<T>&, Size), const Batch<T>& batch, Size parts) {
    const bool worthwhile = batch.samples * batch.columns() > 32768;
#pragma omp parallel for schedule(static) num_threads(worthwhile ? batch.threads : 1)
    for (Size part = 0; part < parts; part++) work(batch, part);
}

// Sums of columns, each replaced by the one over the columns of its channel.
static void fold(std::vector<double>& sums, Size length) {
    for (auto from = sums.begin(); length > 1 && from != sums.end(); from += length)
        std::fill_n(from, length, std::accumulate(from, from + length, 0.0));
}

// Mean and variance of each channel, from those of its columns in each part (Chan, Golub and
// LeVeque 1983).
template <typename T>
static void merge_moments(const Batch<T>& batch) {
    const Size columns = batch.columns(), length = batch.positions;
    std::vector<double> mean(columns), scatter(columns);
    double total = 0;
    for (Size part = 0; part < batch.parts(); part++) {
        const auto *center = batch.sums(part), *shift = center + columns;
        const double share = batch.totals[part];
        total += share * static_cast<double>(length);
        for (Size j = 0; j < columns; j++) mean[j] += share * center[j] + shift[j];
    }
    fold(mean, length);
    for (Size j = 0; j < columns; j++) mean[j] /= total;
    for (Size part = 0; part < batch.parts(); part++) {
        const auto *center = batch.sums(part), *shift = center + columns;
        const auto *squares = shift + columns;
        const double share = batch.totals[part];
        for (Size j = 0; j < columns; j++) {
            const double from = center[j] - mean[j];  // sum(p (x - m)^2), by x - a
            scatter[j] += squares[j] + from * (2 * shift[j] + share * from);
        }
    }
    fold(scatter, length);
    for (Size c = 0; c < batch.channels; c++)
        batch.set_moments(c, mean[c * length], scatter[c * length] / total);
}

template <typename T>
static void normalize_in_rows(Batch<T> batch) {
    const Size columns = batch.columns(), length = batch.positions, parts = batch.parts();
    std::vector<Precise<T>> memory((3 * parts + 3) * columns + parts);
    batch.center = memory.data();
    batch.scale = batch.center + columns;
    batch.offset = batch.scale + columns;
    batch.totals = batch.offset + columns;
    batch.partial = batch.totals + parts;
    run<T>(part_of_moments, batch, parts);
    merge_moments(batch);
    for (Size c = 0; c < batch.channels; c++) {
        const auto scale = batch.gamma(c) * batch.inverse_std(c);
        std::fill_n(batch.center + c * length, length, batch.mean[c]);
        std::fill_n(batch.scale + c * length, length, scale);
        std::fill_n(batch.offset + c * length, length, batch.beta(c) - batch.rest[c] * scale);
    }
    run<T>(part_of_output, batch, parts);
}

template <typename T>
static void differentiate_in_rows(Batch<T> batch) {
    using A = Precise<T>;
    const Size columns = batch.columns(), length = batch.positions, parts = batch.parts();
    std::vector<A> memory((3 * parts + 4) * columns);
    batch.center = memory.data();
    batch.scale = batch.center + columns;
    batch.slope = batch.scale + columns;
    batch.offset = batch.slope + columns;
    batch.partial = batch.offset + columns;
    for (Size j = 0; j < columns; j++) batch.center[j] = batch.mean[j / length];
    run<T>(part_of_gradient_sums, batch, parts);
    std::vector<double> sum(columns), products(columns);
    for (Size part = 0; part < parts; part++) {
        const A *sums = batch.sums(part);
        for (Size j = 0; j < columns; j++) sum[j] += sums[j];
        for (Size j = 0; j < columns; j++) products[j] += sums[columns + j];
    }
    fold(sum, length);
    fold(products, length);
    for (Size c = 0; c < batch.channels; c++) {
        batch.set_gradients(c, sum[c * length], products[c * length]);
        const A scale = batch.gamma(c) * batch.inverse_std(c);
        std::fill_n(batch.scale + c * length, length, scale);
        std::fill_n(batch.slope + c * length, length, batch.slope_of(c));
        std::fill_n(batch.offset + c * length, length, batch.offset_of(c));
    }
    run<T>(part_of_gradient, batch, parts);
}

template <typename T>
static void normalize(const Batch<T>& batch) {
    if (batch.in_rows()) normalize_in_rows(batch);
    else run<T>(channel_of_output, batch, batch.channels);
}

template <typename T>
static void differentiate(const Batch<T>& batch) {
    if (batch.in_rows()) differentiate_in_rows(batch);
    else run<T>(channel_of_gradient, batch, batch.channels);
}
