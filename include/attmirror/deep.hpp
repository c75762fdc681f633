// Everything in the room `deep`, which needs LibTorch: link attmirror::deep. The rest is in
// attmirror/attmirror.hpp. Texts, tokens and images are in attmirror::corpus; their headers (image_set,
// sentiment_words, text_set, token_cache, token_set, tokenize, wordpiece) do not need LibTorch and may be included
// one by one.
#pragma once

#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/fused_adam.hpp>
#include <attmirror/deep/fused_optimizer.hpp>
#include <attmirror/deep/grad_scaler.hpp>
#include <attmirror/deep/image_attention.hpp>
#include <attmirror/deep/image_batch.hpp>
#include <attmirror/deep/image_set.hpp>
#include <attmirror/deep/mirror_descent.hpp>
#include <attmirror/deep/network.hpp>
#include <attmirror/deep/packed_batch.hpp>
#include <attmirror/deep/review_score.hpp>
#include <attmirror/deep/sentiment_words.hpp>
#include <attmirror/deep/steepest_descent.hpp>
#include <attmirror/deep/text_attention.hpp>
#include <attmirror/deep/text_set.hpp>
#include <attmirror/deep/token_cache.hpp>
#include <attmirror/deep/token_score.hpp>
#include <attmirror/deep/token_set.hpp>
#include <attmirror/deep/tokenize.hpp>
#include <attmirror/deep/train_config.hpp>
#include <attmirror/deep/trainer.hpp>
#include <attmirror/deep/transformer.hpp>
#include <attmirror/deep/vit.hpp>
#include <attmirror/deep/weights_file.hpp>
#include <attmirror/deep/wordpiece.hpp>
