"""The names of the TU collection (https://chrsmrrs.github.io/datasets), to tell a name from a path, and from a typo."""

_LISTED = """
AIDS BZR BZR_MD COIL-DEL COIL-RAG COLLAB COLORS-3 COX2 COX2_MD Cuneiform DBLP_v1 DD DHFR DHFR_MD ENZYMES ER_MD
FIRSTMM_DB FRANKENSTEIN Fingerprint IMDB-BINARY IMDB-MULTI KKI Letter-high Letter-low Letter-med MCF-7 MCF-7H MOLT-4
MOLT-4H MSRC_21 MSRC_21C MSRC_9 MUTAG Mutagenicity NCI-H23 NCI-H23H NCI1 NCI109 OHSU OVCAR-8 OVCAR-8H P388 P388H
PC-3 PC-3H PROTEINS PROTEINS_full PTC_FM PTC_FR PTC_MM PTC_MR Peking_1 QM9 REDDIT-BINARY REDDIT-MULTI-12K
REDDIT-MULTI-5K SF-295 SF-295H SN12C SN12CH SW-620 SW-620H SYNTHETIC SYNTHETICnew Synthie TRIANGLES
TWITTER-Real-Graph-Partial UACC257 UACC257H Yeast YeastH ZINC_full ZINC_test ZINC_train ZINC_val alchemy_full
aspirin benzene deezer_ego_nets ethanol github_stargazers malonaldehyde naphthalene reddit_threads salicylic_acid
toluene twitch_egos uracil
"""

NAMES = tuple(_LISTED.split())
